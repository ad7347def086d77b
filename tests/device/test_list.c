/* Enumeration: grouping of routes to one physical device, cleaned texts, notes, the registry. */
#include "fixture.h"

#include <stdio.h>

static lap_error err;

static lap_device_list *enumerate(void) {
    lap_device_list *list;
    assert_ok(lap_device_enumerate(&list, &err));
    return list;
}

static void set_uuid(size_t device, uint8_t byte) {
    fake.devices[device].has_uuid = true;
    memset(fake.devices[device].uuid, byte, 16);
}

static void set_pci(size_t device, uint32_t domain, uint32_t bus) {
    lap_device_info *d = &fake.devices[device];
    d->has_pci = true;
    d->pci_domain = domain;
    d->pci_bus = bus;
}

/* "0,1,0": the physical numbers in list order. */
static void assert_groups(const char *wanted) {
    lap_device_list *list = enumerate();
    char got[64] = "";
    for (size_t i = 0; i < list->count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i ? "," : "",
                 list->devices[i].physical);
    lap_device_list_free(list);
    assert_string_equal(got, wanted);
}

static void test_groups(void **state) {
    (void)state;
    fake_setup();
    fake.device_count = 4;
    assert_groups("0,1,2,3"); /* nothing known: all distinct, whatever their names */
    set_uuid(0, 1);
    set_uuid(2, 1);
    assert_groups("0,1,0,2");
    set_pci(1, 0, 5);
    set_pci(3, 0, 5);
    assert_groups("0,1,0,1");
    set_pci(3, 1, 5); /* the domain counts */
    assert_groups("0,1,0,2");
    /* Sameness is carried on: 0 = 2 by UUID, 2 = 3 by PCI. */
    set_pci(2, 1, 5);
    assert_groups("0,1,0,0");
    /* The last one joins two groups that were apart. */
    fake_setup();
    fake.device_count = 5;
    set_uuid(1, 7);
    set_pci(3, 0, 9);
    set_uuid(4, 7);
    set_pci(4, 0, 9);
    assert_groups("0,1,2,1,1");
}

static void test_zero_ids(void **state) {
    (void)state;
    fake_setup();
    fake.device_count = 4;
    set_uuid(0, 0);
    set_uuid(1, 0);
    set_pci(2, 0, 0);
    set_pci(3, 0, 0);
    assert_groups("0,1,2,3");
    lap_device_list *list = enumerate();
    assert_false(list->devices[0].has_uuid);
    assert_false(list->devices[2].has_pci);
    lap_device_list_free(list);
}

static void test_clean(void **state) {
    (void)state;
    fake_setup();
    strcpy(fake.devices[0].name, "  Iris\x01\t ");
    memset(fake.devices[0].vendor, 'x', sizeof fake.devices[0].vendor); /* not terminated */
    fake.devices[0].base_align_bytes = 0;
    fake.device_count = 2;
    strcpy(fake.devices[1].name, " ");
    lap_device_list *list = enumerate();
    assert_string_equal(list->devices[0].name, "Iris");
    assert_int_equal(strlen(list->devices[0].vendor), sizeof list->devices[0].vendor - 1);
    assert_int_equal(list->devices[0].base_align_bytes, 1);
    assert_string_equal(list->devices[1].name, "unnamed device");
    lap_device_list_free(list);
}

static const lap_device_note *find_note(const lap_device_list *list, const char *backend,
                                        const char *platform) {
    for (size_t i = 0; i < list->note_count; i++) {
        const lap_device_note *n = &list->notes[i];
        if (strcmp(n->backend, backend) == 0 && strcmp(n->platform, platform) == 0) return n;
    }
    fail_msg("no note about %s/%s", backend, platform);
    return NULL;
}

static void test_notes(void **state) {
    (void)state;
    fake_setup();
    fake.note = "  no device on this platform\n";
    fake.enumerate_status = LAP_E_DEVICE;
    lap_device_list *list = enumerate();
    assert_int_equal(list->count, 1); /* what was listed before the failure stays */
    assert_string_equal(find_note(list, "fake", "Fake Platform B")->reason,
                        "no device on this platform");
    const char *reason = find_note(list, "fake", "")->reason;
    assert_non_null(strstr(reason, "no driver"));
    assert_non_null(strstr(reason, "FAKE_NO_DRIVER (100)"));
    /* This program is built without backends, and says so. */
    for (size_t i = 0; lap_registry_known(i, NULL); i++)
        assert_string_equal(find_note(list, lap_registry_known(i, NULL), "")->reason,
                            "not part of this build");
    lap_device_list_free(list);
    fake.enumerate_status = LAP_E_NOMEM;
    assert_fails(lap_device_enumerate(&list, &err), LAP_E_NOMEM, "no driver");
    assert_null(list);
    /* A broken backend does not hide the next one. */
    fake_setup();
    lap_device_ops broken = {.name = "broken"};
    lap_registry_add(NULL);
    lap_registry_add(&broken);
    lap_registry_add(&fake_ops);
    list = enumerate();
    assert_int_equal(list->count, 1);
    assert_non_null(find_note(list, "broken", ""));
    lap_device_list_free(list);
    lap_registry_add(NULL);
}

static void test_many(void **state) {
    (void)state;
    fake_setup();
    fake.device_count = FAKE_MAX_DEVICES;
    lap_device_ops copies[8];
    static char names[8][8];
    lap_registry_add(NULL);
    for (int i = 0; i < 8; i++) {
        copies[i] = fake_ops;
        snprintf(names[i], sizeof names[i], "fake%d", i);
        copies[i].name = names[i];
        lap_registry_add(&copies[i]);
    }
    lap_device_list *list = enumerate();
    assert_int_equal(list->count, 64);
    lap_device_list_free(list);
    lap_registry_add(NULL);
    list = enumerate();
    assert_int_equal(list->count, 0);
    lap_device_list_free(list);
}

static void test_registry(void **state) {
    (void)state;
    lap_registry_add(NULL);
    assert_int_equal(lap_registry_count(), 0);
    assert_null(lap_registry_get(0));
    assert_null(lap_registry_find("fake"));
    assert_null(lap_registry_find(NULL));
    lap_device_ops second = {.name = "fake"};
    lap_registry_add(&fake_ops);
    lap_registry_add(&second);
    assert_int_equal(lap_registry_count(), 1);
    assert_ptr_equal(lap_registry_find("fake"), &second);
    lap_registry_add(NULL);
    assert_int_equal(lap_registry_count(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups), cmocka_unit_test(test_zero_ids),
        cmocka_unit_test(test_clean),  cmocka_unit_test(test_notes),
        cmocka_unit_test(test_many),   cmocka_unit_test(test_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

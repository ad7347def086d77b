/* A team of threads: one lock, one condition, and a generation that grows when everybody who is
 * still there has come. */
#include "measure/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static const double SILENT_AFTER_S = 60;

typedef struct member {
    lap_team_threads *team;
    lap_team face;
    uint64_t waits_for; /* the generation that ends its wait */
    bool gone;
} member;

struct lap_team_threads {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    size_t present, arrived; /* with the lock held, as is the writing of: */
    atomic_uint_least64_t generation;
    size_t count;
    member members[];
};

/* With the lock held. */
static void release_if_complete(lap_team_threads *t) {
    if (t->arrived == 0 || t->arrived < t->present) return;
    t->arrived = 0;
    atomic_fetch_add(&t->generation, 1);
    pthread_cond_broadcast(&t->all_here);
}

static lap_status arrive(void *context, lap_error *err) {
    (void)err;
    member *m = context;
    lap_team_threads *t = m->team;
    pthread_mutex_lock(&t->lock);
    m->waits_for = atomic_load(&t->generation) + 1;
    t->arrived++;
    release_if_complete(t);
    pthread_mutex_unlock(&t->lock);
    return LAP_OK;
}

/* Woken now and then, so that an interruption is noticed. */
static void sleep_a_while(lap_team_threads *t, uint64_t generation) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&t->lock);
    if (atomic_load(&t->generation) < generation)
        pthread_cond_timedwait(&t->all_here, &t->lock, &until);
    pthread_mutex_unlock(&t->lock);
}

static lap_status passed(void *context, bool wait, bool *yes, lap_error *err) {
    (void)err;
    member *m = context;
    if (wait && atomic_load(&m->team->generation) < m->waits_for)
        sleep_a_while(m->team, m->waits_for);
    *yes = atomic_load(&m->team->generation) >= m->waits_for;
    return LAP_OK;
}

/* A member that leaves while it waits at a point is no longer counted there either. */
static void leave(void *context) {
    member *m = context;
    lap_team_threads *t = m->team;
    pthread_mutex_lock(&t->lock);
    if (!m->gone) {
        m->gone = true;
        t->present--;
        if (m->waits_for > atomic_load(&t->generation) && t->arrived > 0) t->arrived--;
        release_if_complete(t);
    }
    pthread_mutex_unlock(&t->lock);
}

lap_status lap_team_threads_new(size_t members, lap_team_threads **out, lap_error *err) {
    *out = NULL;
    lap_team_threads *t = calloc(1, sizeof *t + members * sizeof t->members[0]);
    if (!t) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a team of %zu", members);
    t->present = t->count = members;
    atomic_init(&t->generation, 0);
    if (pthread_mutex_init(&t->lock, NULL) != 0) {
        free(t);
        return LAP_FAIL(err, LAP_E_INTERNAL, "a team of %zu: no lock", members);
    }
    if (pthread_cond_init(&t->all_here, NULL) != 0) {
        pthread_mutex_destroy(&t->lock);
        free(t);
        return LAP_FAIL(err, LAP_E_INTERNAL, "a team of %zu: no condition", members);
    }
    for (size_t i = 0; i < members; i++) {
        member *m = &t->members[i];
        m->team = t;
        m->face = (lap_team){m, i, members, arrive, passed, leave, SILENT_AFTER_S};
    }
    *out = t;
    return LAP_OK;
}

const lap_team *lap_team_threads_member(lap_team_threads *team, size_t index) {
    return &team->members[index].face;
}

void lap_team_threads_free(lap_team_threads *team) {
    if (!team) return;
    pthread_cond_destroy(&team->all_here);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

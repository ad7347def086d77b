/* Sorting of tables, and charts. Texts from documents only ever become text: textContent in the
 * page, strings in charts. */
"use strict";
(function () {
  var root = document.documentElement;

  /* ---- tables ------------------------------------------------------------------------------- */

  /* "232G", "0.25 \u00b1 0.01", "12000 @ 256": the number that the cell begins with. */
  function valueOf(text) {
    var prefix = "kMGTPE".indexOf((/^-?[\d.]+([kMGTPE])$/.exec(text) || [])[1]);
    return parseFloat(text) * Math.pow(1000, prefix + 1);
  }

  /* Numbers by value, what has none last, everything else as text. */
  function compareCells(a, b, numeric) {
    if (!numeric) return a.localeCompare(b);
    var x = valueOf(a), y = valueOf(b);
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
    return x - y;
  }

  function sortBy(table, header) {
    var column = header.cellIndex, body = table.tBodies[0];
    var numeric = header.classList.contains("n");
    var down = header.getAttribute("aria-sort") === "ascending";
    Array.prototype.forEach.call(header.parentNode.cells, function (th) {
      th.removeAttribute("aria-sort");
    });
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    var rows = Array.prototype.slice.call(body.rows);
    rows.map(function (row, i) {
      return { row: row, text: row.cells[column] ? row.cells[column].textContent : "", i: i };
    }).sort(function (a, b) {
      var order = compareCells(a.text, b.text, numeric);
      var absent = numeric && isNaN(parseFloat(a.text)) !== isNaN(parseFloat(b.text));
      return (down && !absent ? -order : order) || a.i - b.i;
    }).forEach(function (entry) { body.appendChild(entry.row); });
  }

  function makeSortable(table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (th) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = th.textContent;
      button.addEventListener("click", function () { sortBy(table, th); });
      th.textContent = "";
      th.appendChild(button);
    });
  }

  /* ---- numbers ------------------------------------------------------------------------------ */

  function digits(value) {
    if (value === null || !isFinite(value)) return "-";
    var size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 1e6 || size < 1e-3) return value.toExponential(2);
    return String(Number(value.toPrecision(size >= 1000 ? Math.ceil(Math.log10(size + 1)) : 3)));
  }

  function prefixed(value) {
    var names = ["", "k", "M", "G", "T", "P"], i = 0;
    while (Math.abs(value) >= 999.5 && i < names.length - 1) { value /= 1000; i++; }
    return digits(value) + (names[i] ? " " + names[i] : "");
  }

  function timeUnit(seconds) {
    if (seconds >= 1) return { name: "s", factor: 1 };
    if (seconds >= 1e-3) return { name: "ms", factor: 1e3 };
    return { name: "\u00b5s", factor: 1e6 };
  }

  function largest(list) {
    return list.reduce(function (most, x) { return x !== null && x > most ? x : most; }, 0);
  }

  function shorten(text, most) {
    var letters = Array.from(text);
    if (letters.length <= most) return text;
    var tail = Math.floor((most - 1) * 0.45);
    return letters.slice(0, most - 1 - tail).join("") + "\u2026" + letters.slice(letters.length - tail).join("");
  }

  /* Of a label: less on a narrow screen. */
  function room(most) {
    return root.clientWidth < 640 ? Math.ceil(most * 0.55) : most;
  }

  /* ---- looks -------------------------------------------------------------------------------- */

  var theme = {};
  var markers = ["circle", "rect", "triangle", "rectRot", "crossRot", "star", "rectRounded", "cross"];
  var dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4], [1, 2], [6, 2, 1, 2, 1, 2]];

  function readTheme() {
    var style = getComputedStyle(root);
    function get(name) { return style.getPropertyValue("--" + name).trim(); }
    theme = { ink: get("ink"), soft: get("soft"), grid: get("grid"), paper: get("paper"), panel: get("panel"), colours: [] };
    for (var i = 0; i < 8; i++) theme.colours.push(get("c" + i));
  }

  function colour(i) { return theme.colours[i % theme.colours.length]; }

  /* A fill that is told apart without colour. */
  function pattern(i, context) {
    var tile = document.createElement("canvas"), size = 8;
    tile.width = tile.height = size;
    var pen = tile.getContext("2d"), kind = i % 8;
    pen.fillStyle = colour(i);
    pen.globalAlpha = kind === 0 ? 0.9 : 0.35;
    pen.fillRect(0, 0, size, size);
    pen.globalAlpha = 1;
    pen.strokeStyle = colour(i);
    pen.lineWidth = 1.8;
    pen.beginPath();
    if (kind === 1 || kind === 4) { pen.moveTo(-2, 6); pen.lineTo(6, -2); pen.moveTo(2, 10); pen.lineTo(10, 2); }
    if (kind === 3 || kind === 4) { pen.moveTo(2, -2); pen.lineTo(10, 6); pen.moveTo(-2, 2); pen.lineTo(6, 10); }
    if (kind === 5 || kind === 7) { pen.moveTo(0, 4); pen.lineTo(8, 4); }
    if (kind === 6 || kind === 7) { pen.moveTo(4, 0); pen.lineTo(4, 8); }
    pen.stroke();
    if (kind === 2) { pen.fillRect(1, 1, 2.4, 2.4); pen.fillRect(5, 5, 2.4, 2.4); }
    return context.createPattern(tile, "repeat");
  }

  function axis(title, more) {
    var base = {
      title: { display: !!title, text: title, color: theme.soft },
      grid: { color: theme.grid, borderColor: theme.soft },
      ticks: { color: theme.soft, maxRotation: 40 }
    };
    for (var key in more || {}) {
      if (typeof more[key] === "object" && base[key]) Object.assign(base[key], more[key]);
      else base[key] = more[key];
    }
    return base;
  }

  /* Ticks of a logarithmic axis: 1, 2, 5 of each decade at most. */
  function logTicks(format) {
    return function (value) {
      var lead = Number(String(value.toExponential()).split("e")[0]);
      var span = Math.log10(this.max / this.min);
      return lead === 1 || (span < 3 && (lead === 2 || lead === 5)) ? format(value) : "";
    };
  }

  function options(scales, more) {
    var base = {
      responsive: true, maintainAspectRatio: false, animation: false,
      devicePixelRatio: root.classList.contains("paper") ? 2 : undefined,
      color: theme.ink, font: { family: "inherit" }, scales: scales,
      layout: { padding: { top: 14, right: 6 } },
      plugins: {
        legend: {
          position: "bottom",
          labels: {
            color: theme.ink, usePointStyle: true, boxWidth: 10, boxHeight: 7, padding: 14,
            filter: function (item) { return item.text !== ""; }
          }
        },
        tooltip: {}
      }
    };
    Object.assign(base, more || {});
    return base;
  }

  /* ---- plugins of our own ------------------------------------------------------------------- */

  /* Whiskers: dataset.whiskers holds [low, high] or null for each bar; values above the bars. */
  var whiskers = {
    id: "whiskers",
    afterDatasetsDraw: function (chart) {
      var pen = chart.ctx;
      chart.data.datasets.forEach(function (dataset, d) {
        if (!dataset.whiskers || !chart.isDatasetVisible(d)) return;
        chart.getDatasetMeta(d).data.forEach(function (bar, i) {
          var range = dataset.whiskers[i], value = dataset.data[i], top = bar.y;
          if (value === null || value === undefined) return;
          pen.save();
          pen.strokeStyle = pen.fillStyle = theme.ink;
          pen.lineWidth = 1.4;
          if (range) {
            var low = chart.scales.y.getPixelForValue(range[0]), high = chart.scales.y.getPixelForValue(range[1]);
            var arm = Math.max(2, Math.min(6, bar.width / 4));
            pen.beginPath();
            pen.moveTo(bar.x, low); pen.lineTo(bar.x, high);
            pen.moveTo(bar.x - arm, low); pen.lineTo(bar.x + arm, low);
            pen.moveTo(bar.x - arm, high); pen.lineTo(bar.x + arm, high);
            pen.stroke();
            top = Math.min(top, high);
          }
          pen.font = "11px sans-serif";
          pen.textAlign = "center";
          if (pen.measureText(digits(value)).width < bar.width + 22) pen.fillText(digits(value), bar.x, top - 5);
          pen.restore();
        });
      });
    }
  };

  /* Upright lines with a name: options.plugins.marks.list of [name, x]. */
  var marks = {
    id: "marks",
    afterDatasetsDraw: function (chart, args, settings) {
      var pen = chart.ctx, area = chart.chartArea, last = -1e9, row = 0;
      (settings.list || []).forEach(function (mark) {
        var x = chart.scales.x.getPixelForValue(mark[1]);
        if (x < area.left - 1 || x > area.right + 1) return;
        row = x - last < 34 ? row + 1 : 0;
        last = x;
        pen.save();
        pen.strokeStyle = theme.ink;
        pen.setLineDash([4, 3]);
        pen.beginPath(); pen.moveTo(x, area.top); pen.lineTo(x, area.bottom); pen.stroke();
        pen.fillStyle = theme.ink;
        pen.font = "11px sans-serif";
        pen.textAlign = x > area.right - 26 ? "right" : "left";
        pen.fillText(mark[0], x + (x > area.right - 26 ? -3 : 3), area.top + 11 + 13 * row);
        pen.restore();
      });
    }
  };

  /* Names at points: dataset.names[i] or ""; rings: dataset.rings[i] true. */
  var names = {
    id: "names",
    afterDatasetsDraw: function (chart) {
      var pen = chart.ctx, taken = [];
      chart.data.datasets.forEach(function (dataset, d) {
        if (!dataset.names || !chart.isDatasetVisible(d)) return;
        chart.getDatasetMeta(d).data.forEach(function (point, i) {
          pen.save();
          pen.strokeStyle = theme.ink;
          pen.lineWidth = 1.6;
          if (dataset.rings && dataset.rings[i]) {
            pen.beginPath(); pen.arc(point.x, point.y, 10, 0, 2 * Math.PI); pen.stroke();
          }
          var name = dataset.names[i];
          if (name) {
            pen.font = "11px sans-serif";
            var width = pen.measureText(name).width, right = point.x + 12 + width > chart.chartArea.right;
            var x = right ? point.x - 12 - width : point.x + 12, y = point.y - 8, tries = 0;
            function clash() {
              return taken.some(function (t) { return Math.abs(t.y - y) < 12 && x < t.x + t.w && t.x < x + width; });
            }
            while (clash() && tries++ < 8) y += tries % 2 ? 13 * tries : -13 * tries;
            if (!clash()) {
              taken.push({ x: x, y: y, w: width });
              pen.lineWidth = 3;
              pen.strokeStyle = theme.panel;
              pen.strokeText(name, x, y);
              pen.fillStyle = theme.ink;
              pen.fillText(name, x, y);
            }
          }
          pen.restore();
        });
      });
    }
  };

  /* ---- kinds of charts ---------------------------------------------------------------------- */

  var kinds = {};

  function lineLook(i) {
    return {
      borderColor: colour(i), backgroundColor: colour(i), pointBorderColor: colour(i), borderWidth: 2,
      pointStyle: markers[i % 8], pointRadius: 4, pointHoverRadius: 6, borderDash: dashes[i % 8]
    };
  }

  kinds.bars = function (data, context) {
    var datasets = data.series.map(function (series, i) {
      var values = data.categories.map(function () { return null; }), ranges = values.slice();
      series.values.forEach(function (bar) {
        values[bar[0]] = bar[1];
        ranges[bar[0]] = bar[2] === null ? null : [bar[2], bar[3]];
      });
      return {
        label: shorten(series.label, room(60)), data: values, whiskers: ranges, pointStyle: "rect",
        backgroundColor: pattern(i, context), borderColor: colour(i), borderWidth: 1.2, maxBarThickness: 90
      };
    });
    return {
      type: "bar", plugins: [whiskers],
      data: { labels: data.categories, datasets: datasets },
      options: options({ x: axis(""), y: axis("images/s", { beginAtZero: true, grace: "8%" }) })
    };
  };

  kinds.latency = function (data) {
    var unit = timeUnit(data.high), f = unit.factor, count = data.counts.length;
    var width = (data.high - data.low) / count, outline = [{ x: data.low * f, y: 0 }];
    data.counts.forEach(function (n, i) { outline.push({ x: (data.low + width * i) * f, y: n }); });
    outline.push({ x: data.high * f, y: data.counts[count - 1] }, { x: data.high * f, y: 0 });
    var curve = data.curve.filter(function (p) { return p[0] <= data.high; }).map(function (p) {
      return { x: p[0] * f, y: p[1] * 100 };
    });
    curve.unshift({ x: data.low * f, y: 0 });
    if (curve[curve.length - 1].x < data.high * f) curve.push({ x: data.high * f, y: curve[curve.length - 1].y });
    var margin = width * f * 0.5;
    var settings = options({
      x: axis(unit.name, { type: "linear", min: data.low * f - margin, max: data.high * f + margin, ticks: { callback: digits, maxTicksLimit: 8, includeBounds: false, maxRotation: 0 } }),
      y: axis("samples", { beginAtZero: true, grace: "10%", ticks: { precision: 0 } }),
      y1: axis("share", { position: "right", min: 0, max: 100, grid: { drawOnChartArea: false }, ticks: { callback: function (v) { return v + " %"; } } })
    });
    settings.plugins.marks = { list: data.marks.map(function (m) { return [m[0], m[1] * f]; }) };
    settings.plugins.tooltip = { callbacks: { title: function (items) { return digits(items[0].parsed.x) + " " + unit.name; } } };
    return {
      type: "line", plugins: [marks],
      data: {
        datasets: [
          { label: "up to here", data: curve, yAxisID: "y1", stepped: "before", pointRadius: 0, borderColor: colour(1), backgroundColor: colour(1), borderWidth: 2, pointStyle: "line" },
          { label: "samples", data: outline, stepped: "before", fill: "origin", pointRadius: 0, borderColor: colour(0), backgroundColor: colour(0) + "55", borderWidth: 1.5, pointStyle: "rect" }
        ]
      },
      options: settings
    };
  };

  kinds.throughput = function (data) {
    var batches = [], datasets = data.series.map(function (series, i) {
      var look = lineLook(i);
      series.points.forEach(function (p) { if (batches.indexOf(p[0]) < 0) batches.push(p[0]); });
      return Object.assign(look, {
        label: shorten(series.label, room(60)),
        data: series.points.map(function (p) { return { x: p[0], y: p[1] }; }),
        rings: series.points.map(function (p) { return p[0] === series.knee; }),
        names: series.points.map(function (p) { return p[0] === series.knee ? "knee " + p[0] : ""; }),
        pointBackgroundColor: series.points.map(function (p) { return p[2] ? theme.panel : colour(i); })
      });
    });
    /* Devices that are far apart would be lines at the bottom of a linear scale. */
    var tops = data.series.map(function (s) { return largest(s.points.map(function (p) { return p[1]; })); });
    var far = largest(tops) > 15 * Math.min.apply(null, tops);
    var rate = far ? { type: "logarithmic", grace: "8%", ticks: { autoSkip: false, maxRotation: 0, callback: logTicks(digits) } } : { beginAtZero: true, grace: "8%" };
    batches.sort(function (a, b) { return a - b; });
    var low = batches[0] || 1, high = batches[batches.length - 1] || 1;
    return {
      type: "line", plugins: [names],
      data: { datasets: datasets },
      options: options({
        x: axis("batch", {
          type: "logarithmic", min: low * 0.85, max: high * 1.18,
          afterBuildTicks: function (scale) { scale.ticks = batches.map(function (b) { return { value: b }; }); },
          ticks: { autoSkip: true, autoSkipPadding: 10, callback: function (v) { return String(v); } }
        }),
        y: axis(far ? "images/s (logarithmic)" : "images/s", rate)
      })
    };
  };

  kinds.roofline = function (data) {
    var xs = data.points.map(function (p) { return p.x; }), ys = data.points.map(function (p) { return p.y; });
    var left = Math.min.apply(null, xs) / 2, right = Math.max.apply(null, xs) * 2.5;
    var total = data.points.reduce(function (sum, p) { return sum + (p.time || 0); }, 0);
    var sorts = [], datasets = [], low = Math.min.apply(null, ys);
    var heavy = data.points.slice().sort(function (a, b) { return (b.time || 0) - (a.time || 0); }).slice(0, 4);
    data.points.forEach(function (p) { if (sorts.indexOf(p.sort) < 0) sorts.push(p.sort); });
    sorts.forEach(function (sort, i) {
      var own = data.points.filter(function (p) { return p.sort === sort; });
      var sizes = own.map(function (p) { return total > 0 ? 4 + 16 * Math.sqrt((p.time || 0) / total) : 5; });
      datasets.push({
        type: "scatter", label: shorten(sort, 30), data: own.map(function (p) { return { x: p.x, y: p.y }; }), own: own,
        borderColor: colour(i), backgroundColor: colour(i) + "66", borderWidth: 1.6, pointStyle: markers[i % 8],
        pointRadius: sizes, pointHoverRadius: sizes,
        names: own.map(function (p) { return heavy.indexOf(p) >= 0 ? shorten(p.name, 24) : ""; })
      });
    });
    function roof(name, bandwidth, dash) {
      if (!bandwidth) return;
      var corner = data.peak / bandwidth, from = left;
      var line = [{ x: from, y: Math.min(data.peak, bandwidth * from) }];
      if (corner > from && corner < right) line.push({ x: corner, y: data.peak });
      line.push({ x: right, y: Math.min(data.peak, bandwidth * right) });
      low = Math.min(low, line[0].y);
      datasets.push({ type: "line", label: name + " " + prefixed(bandwidth) + "B/s", data: line, pointRadius: 0, borderColor: theme.ink, backgroundColor: theme.ink, borderWidth: 1.6, borderDash: dash, pointStyle: "line" });
    }
    roof("memory", data.memory, []);
    roof("cache", data.cache, [6, 4]);
    datasets.push({ type: "line", label: "peak " + prefixed(data.peak) + "FLOP/s", data: [], borderColor: theme.ink, borderWidth: 1.6, pointStyle: "line" });
    var settings = options({
      x: axis("FLOP per byte", { type: "logarithmic", min: left, max: right, ticks: { autoSkip: false, maxRotation: 0, callback: logTicks(digits) } }),
      y: axis("FLOP/s", { type: "logarithmic", min: low / 2, max: Math.max(data.peak, Math.max.apply(null, ys)) * 2, ticks: { autoSkip: false, maxRotation: 0, callback: logTicks(prefixed) } })
    });
    settings.plugins.tooltip = {
      callbacks: {
        label: function (item) {
          var p = item.dataset.own && item.dataset.own[item.dataIndex];
          if (!p) return item.dataset.label;
          var unit = timeUnit(p.time || 0);
          return shorten(p.name, 40) + ": " + prefixed(p.y) + "FLOP/s, " + digits((p.time || 0) * unit.factor) + " " + unit.name +
            (p.share === null ? "" : ", " + digits(p.share * 100) + " % of the roof");
        }
      }
    };
    return { type: "scatter", plugins: [names], data: { datasets: datasets }, options: settings };
  };

  kinds.layers = function (data, context) {
    var all = [];
    data.series.forEach(function (s) { s.values.forEach(function (bar) { all.push(bar[1]); }); });
    var unit = timeUnit(largest(all));
    var datasets = data.series.map(function (series, i) {
      var values = data.categories.map(function () { return null; }), kernels = values.slice();
      series.values.forEach(function (bar) {
        values[bar[0]] = bar[1] === null ? null : bar[1] * unit.factor;
        kernels[bar[0]] = bar[2];
      });
      return {
        label: shorten(series.label, room(60)), data: values, kernels: kernels, pointStyle: "rect",
        backgroundColor: pattern(i, context), borderColor: colour(i), borderWidth: 1
      };
    });
    var settings = options({
      x: axis(unit.name, { beginAtZero: true, position: "top" }),
      y: axis("", { ticks: { autoSkip: false, callback: function (v) { return shorten(this.getLabelForValue(v), room(30)); } } })
    }, { indexAxis: "y" });
    settings.plugins.tooltip = {
      callbacks: { afterLabel: function (item) { return shorten(item.dataset.kernels[item.dataIndex] || "", 60); } }
    };
    return {
      type: "bar", height: 90 + data.categories.length * (10 + 13 * datasets.length),
      data: { labels: data.categories, datasets: datasets }, options: settings
    };
  };

  var spanNames = ["submission", "wall", "device"];

  kinds.spans = function (data) {
    var all = [], datasets = [], most = 0;
    ["cold", "warm"].forEach(function (side) {
      spanNames.forEach(function (name) { all = all.concat(data[side][name]); most = Math.max(most, data[side][name].length); });
    });
    var unit = timeUnit(largest(all));
    ["warm", "cold"].forEach(function (side) {
      spanNames.forEach(function (name, i) {
        datasets.push(Object.assign(lineLook(i), {
          label: name + (side === "cold" ? ", without warm-up" : ", with warm-up"),
          data: data[side][name].map(function (v) { return v === null ? null : v * unit.factor; }),
          borderDash: side === "cold" ? [5, 4] : [],
          pointBackgroundColor: side === "cold" ? theme.panel : colour(i)
        }));
      });
    });
    var labels = [];
    for (var i = 1; i <= most; i++) labels.push(String(i));
    return {
      type: "line", data: { labels: labels, datasets: datasets },
      options: options({ x: axis("repeat"), y: axis(unit.name, { type: "logarithmic", ticks: { autoSkip: false, maxRotation: 0, callback: logTicks(digits) } }) })
    };
  };

  function rowAxis() {
    return axis("", { offset: true, ticks: { autoSkip: false, callback: function (v) { return shorten(this.getLabelForValue(v), room(48)); } } });
  }

  kinds.parts = function (data) {
    var unit = timeUnit(largest(data.wall)), datasets = spanNames.map(function (name, i) {
      return Object.assign(lineLook(i), {
        label: name, showLine: false, pointRadius: 6,
        data: data[name].map(function (v) { return v === null ? null : v * unit.factor; })
      });
    });
    return {
      type: "line", height: 110 + 30 * data.categories.length,
      data: { labels: data.categories, datasets: datasets },
      options: options({ x: axis(unit.name, { type: "logarithmic", ticks: { autoSkip: false, maxRotation: 0, callback: logTicks(digits) } }), y: rowAxis() }, { indexAxis: "y" })
    };
  };

  kinds.sensors = function (data) {
    var datasets = [], scales = { x: axis("seconds", { type: "linear", ticks: { callback: digits } }) };
    function add(list, name, id, i, position) {
      if (!list.some(function (v) { return v !== null; })) return;
      var points = [];
      list.forEach(function (v, k) {
        if (k > 0 && data.at[k] - data.at[k - 1] > 1) points.push({ x: (data.at[k] + data.at[k - 1]) / 2, y: null });
        points.push({ x: data.at[k], y: v });
      });
      datasets.push(Object.assign(lineLook(i), { label: name, data: points, yAxisID: id, pointRadius: 2.5, borderWidth: 1.6 }));
      scales[id] = axis(name, { position: position, grace: "10%", grid: { drawOnChartArea: position === "left" } });
    }
    add(data.clock, "clock MHz", "y", 0, "left");
    add(data.power, "power W", "y1", 1, "right");
    add(data.temperature, "temperature \u00b0C", "y2", 2, "right");
    return { type: "line", data: { datasets: datasets }, options: options(scales) };
  };

  kinds.clocks = function (data, context) {
    function known(list) { return list.some(function (v) { return v !== null; }); }
    var means = data.clock.map(function (r) { return r[1]; }), datasets = [];
    var scales = { y: rowAxis() };
    if (known(means)) {
      datasets.push({ type: "line", label: "mean clock", data: means, showLine: false, xAxisID: "x", pointStyle: "line", rotation: 90, pointRotation: 90, pointRadius: 9, pointBorderWidth: 3, borderColor: theme.ink, backgroundColor: theme.ink });
      datasets.push({ label: "clock, lowest to highest", data: data.clock.map(function (r) { return r[0] === null ? null : [r[0], r[2]]; }), xAxisID: "x", backgroundColor: pattern(0, context), borderColor: colour(0), borderWidth: 2, borderSkipped: false, maxBarThickness: 16, pointStyle: "rect" });
      scales.x = axis("clock MHz", { grace: "10%" });
    }
    if (known(data.power)) {
      datasets.push({ type: "line", label: "power", data: data.power, showLine: false, xAxisID: "x1", pointStyle: "rectRot", pointRadius: 7, borderColor: colour(1), backgroundColor: colour(1) });
      scales.x1 = axis("power W", { position: "top", beginAtZero: true, grid: { drawOnChartArea: false } });
    }
    return {
      type: "bar", height: 130 + 30 * data.categories.length,
      data: { labels: data.categories, datasets: datasets }, options: options(scales, { indexAxis: "y" })
    };
  };

  /* ---- drawing ------------------------------------------------------------------------------ */

  var drawn = [];

  function draw() {
    drawn.forEach(function (chart) { chart.destroy(); });
    drawn = [];
    readTheme();
    var all = JSON.parse(document.getElementById("data").textContent);
    document.querySelectorAll("figure[data-chart]").forEach(function (figure) {
      var canvas = figure.querySelector("canvas"), data = all[Number(figure.dataset.chart)];
      var made = kinds[data.kind](data, canvas.getContext("2d"));
      if (made.height) canvas.parentNode.style.height = made.height + "px";
      drawn.push(new Chart(canvas, made));
    });
  }

  function setAllOpen(open) {
    document.querySelectorAll("details").forEach(function (d) { d.open = open; });
  }

  /* Paper is white, whatever the screen is; closed lists of settings would be lost on it. */
  function toPaper(on) {
    root.classList.toggle("paper", on);
    document.querySelectorAll("#configuration details").forEach(function (d) { if (on) d.open = true; });
    if (drawn.length) draw();
  }

  document.querySelectorAll("table.sortable").forEach(makeSortable);
  var button = document.createElement("button"), open = false;
  button.type = "button";
  button.textContent = "Open all tables";
  button.addEventListener("click", function () {
    open = !open;
    setAllOpen(open);
    button.textContent = open ? "Close all tables" : "Open all tables";
  });
  document.querySelector("nav").appendChild(button);
  if (!document.getElementById("data")) return;
  document.querySelectorAll("figure details").forEach(function (d) { d.open = false; });
  draw();
  window.addEventListener("beforeprint", function () { toPaper(true); });
  window.addEventListener("afterprint", function () { toPaper(false); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();

// Shows the rows that the server sends, and asks for a token if it has none. Whatever a row contains is
// inserted as text, never as HTML.
"use strict";
const at = (id) => document.getElementById(id);
const rows = new Map();
const glyphs = { Blocked: "✖", Unreadable: "✖", Moving: "▶", Aborting: "◀", Finalizing: "▶", Moved: "✔", Finalized: "✔", Aborted: "↩", Paused: "❚❚", Split: "❚❚", Waiting: "…", Stopped: "…", StoppedInFlight: "✖" };
const looks = { Blocked: "bad", Unreadable: "bad", Moving: "busy", Aborting: "busy", Finalizing: "busy", Moved: "good", Finalized: "good", Paused: "wait", Split: "wait", Waiting: "wait", Stopped: "wait", StoppedInFlight: "bad" };
let token = sessionStorage.getItem("token") || "";
let order = [];

function element(name, text, kind) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (kind) e.className = kind;
  return e;
}

function age(since) {
  const s = Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000));
  if (s < 60) return s + "s";
  if (s < 3600) return Math.floor(s / 60) + "m" + (s % 60) + "s";
  if (s < 86400) return Math.floor(s / 3600) + "h" + Math.floor(s % 3600 / 60) + "m";
  return Math.floor(s / 86400) + "d" + Math.floor(s % 86400 / 3600) + "h";
}

function drawn(r) {
  const tr = element("tr", undefined, r.attention ? "attention" : "");
  const plan = element("td", r.plan, "plan");
  plan.append(element("span", r.namespace, "quiet"));
  const moved = element("td");
  if (r.ordinals) {
    moved.append(r.moved + " of " + r.ordinals);
    const bar = element("progress");
    bar.max = r.ordinals;
    bar.value = r.moved;
    bar.setAttribute("aria-label", "moved");
    moved.append(bar);
  }
  const since = element("td", r.since ? age(r.since) : "", "since");
  if (r.since) {
    since.dataset.since = r.since;
    since.title = r.since;
  }
  const why = element("td", r.reason || "", "why");
  if (r.runbook && r.runbook.startsWith("https://")) {
    const a = element("a", r.reasonID);
    a.href = r.runbook;
    a.rel = "noopener noreferrer";
    a.target = "_blank";
    why.append(" [", a, "]");
  }
  if (r.next) why.append(element("span", "next: " + r.next.replaceAll("`", ""), "quiet next"));
  tr.append(plan, element("td", r.source || "?"), element("td", r.destination || "?"),
    element("td", (glyphs[r.state] || "○") + " " + r.state, "state " + (looks[r.state] || "")), moved,
    element("td", r.ordinals ? r.inFlight + " of " + r.maxUnavailable : "", r.inFlight ? "busy" : ""), since, why);
  return tr;
}

function show() {
  const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (r) => words.every((w) => [r.plan, r.namespace, r.state, r.source, r.destination].join(" ").toLowerCase().includes(w));
  const all = order.map((k) => rows.get(k)).filter((e) => fits(e.row));
  at("plans").tBodies[0].replaceChildren(...all.map((e) => e.tr));
  at("plans").hidden = rows.size === 0;
  at("none").hidden = rows.size > 0;
  document.title = (order.some((k) => rows.get(k).row.attention) ? "! " : "") + "stsmigrate";
}

const rank = (r) => r.attention ? 0 : ["Moving", "Aborting", "Finalizing", "Waiting", "Stopped"].includes(r.state) ? 1 : ["Finalized", "Aborted"].includes(r.state) ? 3 : 2;

function take(news) {
  if (news.all) rows.clear();
  for (const row of news.rows) rows.set(row.namespace + "/" + row.plan, { row, tr: drawn(row) });
  order = [...rows.keys()].sort((a, b) => {
    const x = rows.get(a).row, y = rows.get(b).row;
    return rank(x) - rank(y) || (x.plan < y.plan ? -1 : x.plan > y.plan ? 1 : 0) || (x.namespace < y.namespace ? -1 : 1);
  });
  show();
}

function link(text, lost) {
  at("link").textContent = text;
  at("link").classList.toggle("lost", Boolean(lost));
}

function ask(why) {
  token = "";
  sessionStorage.removeItem("token");
  rows.clear();
  order = [];
  show();
  at("none").hidden = true;
  at("why").textContent = why;
  at("login").hidden = false;
  link("not connected", true);
}

// stream reads events until the connection ends. It returns the status of the answer, 200 for one that was read.
async function stream() {
  const answer = await fetch("events", { headers: { Authorization: "Bearer " + token }, cache: "no-store" });
  if (answer.status !== 200) return { status: answer.status, why: (await answer.text()).trim() };
  link("live");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return { status: 200 };
    rest += value;
    const messages = rest.split("\n\n");
    rest = messages.pop();
    for (const m of messages) {
      const data = m.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data) take(JSON.parse(data));
    }
  }
}

async function run() {
  for (let failures = 0, lost = ""; token; ) {
    let end;
    try {
      end = await stream();
    } catch {
      end = { status: 0, why: "the server does not answer" };
    }
    if (end.status === 401 || end.status === 403) return ask(end.why);
    failures = end.status === 200 ? 0 : failures + 1;
    if (failures === 1) lost = new Date().toLocaleTimeString();
    if (failures) link("not live since " + lost + ": " + end.why, true);
    await new Promise((again) => setTimeout(again, Math.min(10000, 500 * 2 ** failures)));
  }
}

at("filter").addEventListener("input", show);
at("login").addEventListener("submit", (e) => {
  e.preventDefault();
  token = at("token").value.trim();
  at("token").value = "";
  at("login").hidden = true;
  sessionStorage.setItem("token", token);
  link("connecting");
  run();
});
setInterval(() => { for (const e of document.querySelectorAll("td.since[data-since]")) e.textContent = age(e.dataset.since); }, 1000);

// The fragment of an address is not sent to any server; it is removed, so that it is in no history either.
if (location.hash.length > 1) {
  token = location.hash.slice(1);
  sessionStorage.setItem("token", token);
  history.replaceState(null, "", location.pathname);
}
if (token) run(); else ask("A token is needed.");

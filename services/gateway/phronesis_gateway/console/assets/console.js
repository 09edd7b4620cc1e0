// The console's script: sends a message, follows its turn, draws its charts. Everything it shows was made and escaped by the
// gateway, and comes as HTML; what it writes itself is text.
"use strict";

const PHASES = {
  preprocessed: "Read the message",
  classified: "Understood the question",
  routed: "Decided how to answer",
  retrieved: "Looked it up",
  tools: "Looked it up with tools",
  answered: "Wrote the answer",
};
const AGAIN = 2000; // milliseconds before a lost connection is tried again

const byId = (id) => document.getElementById(id);
const messages = byId("messages");
const composer = byId("composer");
let unsent = null; // the message that was tried last and did not arrive, with its key

async function part(address, options = {}) {
  const answer = await fetch(address, { credentials: "same-origin", redirect: "error", ...options });
  if (!(answer.headers.get("content-type") || "").startsWith("text/html")) {
    const said = await answer.json().catch(() => ({}));
    throw new Error(said.detail || `The gateway answered with ${answer.status}.`);
  }
  return { ok: answer.ok, passing: [429, 503, 504].includes(answer.status), html: await answer.text() };
}

function note(place, error) {
  const said = document.createElement("div");
  said.className = "fault";
  said.setAttribute("role", "alert");
  said.textContent = error instanceof TypeError
    ? "The gateway cannot be reached. Check the connection, then do it again: nothing is done twice."
    : error.message;
  place.append(said);
}

function draw(inside) {
  for (const place of inside.querySelectorAll("[data-figure]")) {
    const figure = JSON.parse(place.dataset.figure);
    place.removeAttribute("data-figure");
    Plotly.newPlot(place, figure.data, figure.layout, { responsive: true, displaylogo: false, displayModeBar: false });
  }
}

function show(html) {
  const before = messages.lastElementChild;
  messages.insertAdjacentHTML("beforeend", html);
  for (let each = before ? before.nextElementSibling : messages.firstElementChild; each; each = each.nextElementSibling) {
    ready(each);
  }
  messages.lastElementChild.scrollIntoView({ block: "end" });
}

function ready(element) {
  draw(element);
  if (element.dataset.events) follow(element);
  if (element.dataset.conversation) belongs(element.dataset.conversation);
}

function belongs(conversation) {
  if (composer.dataset.conversation === conversation) return;
  composer.dataset.conversation = conversation;
  byId("agent").readOnly = true;
  history.replaceState(null, "", `/console/conversations/${conversation}`);
  list();
}

async function list() {
  try {
    const found = await part("/console/conversations");
    if (found.ok) byId("conversations").innerHTML = found.html;
  } catch (error) {
    console.warn("the list of conversations could not be read", error);
  }
}

function follow(turn) {
  const progress = turn.querySelector(".progress");
  const preview = turn.querySelector(".preview");
  const events = new EventSource(turn.dataset.events);
  events.addEventListener("accepted", () => { progress.textContent = "Accepted …"; });
  events.addEventListener("phase", (event) => {
    const { phase, detail } = JSON.parse(event.data);
    progress.textContent = phase === "waiting_for"
      ? `Waiting for ${detail.waiting_for}, which does not answer …`
      : `${PHASES[phase] || phase.replaceAll("_", " ")} …`;
  });
  events.addEventListener("text", (event) => {
    const text = JSON.parse(event.data);
    preview.textContent = text.k === 1 ? text.text : preview.textContent + text.text;
  });
  events.addEventListener("done", () => { events.close(); look(turn); });
  events.addEventListener("error", () => {
    progress.textContent = "The connection was lost; trying again …";
    if (events.readyState === EventSource.CLOSED) setTimeout(() => look(turn), AGAIN);
  });
}

async function look(turn) {
  try {
    const found = await part(turn.dataset.view);
    if (found.passing) throw new Error("a part of the platform is away");
    const holder = document.createElement("template");
    holder.innerHTML = found.html;
    const now = holder.content.firstElementChild;
    turn.replaceWith(now);
    ready(now);
    if (found.ok) now.scrollIntoView({ block: "nearest" });
  } catch (error) {
    turn.querySelector(".progress").textContent = "The turn cannot be read now; trying again …";
    setTimeout(() => look(turn), AGAIN);
  }
}

async function send(event) {
  event.preventDefault();
  const text = byId("text").value;
  const agent = byId("agent").value.trim();
  if (!text.trim() || byId("send").disabled) return;
  const body = JSON.stringify({
    currentMessageText: text, agent, ...(composer.dataset.conversation && { conversationId: composer.dataset.conversation }),
  });
  if (unsent === null || unsent.body !== body) unsent = { body, key: crypto.randomUUID() };
  byId("send").disabled = true;
  for (const old of messages.querySelectorAll(":scope > .fault")) old.remove();
  try {
    const found = await part("/console/messages", {
      method: "POST", body, headers: { "Content-Type": "application/json", "Idempotency-Key": unsent.key },
    });
    if (found.ok) { unsent = null; byId("text").value = ""; }
    show(found.html);
  } catch (error) {
    note(messages, error);
  } finally {
    byId("send").disabled = false;
    byId("text").focus();
  }
}

async function clicked(event) {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.trace) {
    byId("trace-inside").textContent = "Asking every service …";
    byId("trace").showModal();
    try {
      byId("trace-inside").innerHTML = (await part(button.dataset.trace)).html;
    } catch (error) {
      byId("trace-inside").textContent = "";
      note(byId("trace-inside"), error);
    }
  }
  if (button.dataset.stop) {
    button.disabled = true;
    try {
      const found = await part(button.dataset.stop, { method: "POST" });
      if (!found.ok) messages.insertAdjacentHTML("beforeend", found.html);
    } catch (error) {
      note(messages, error);
    }
  }
}

composer.addEventListener("submit", send);
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); composer.requestSubmit(); }
});
document.addEventListener("click", clicked);
document.addEventListener("submit", (event) => {
  if (event.target.matches(".delete") && !confirm("Delete this conversation for good?")) event.preventDefault();
});
for (const each of messages.children) ready(each);
if (messages.lastElementChild) messages.lastElementChild.scrollIntoView({ block: "end" });
byId("text").focus();

// Asks for the page anew when the service says that something changed, and puts in what can change.
(() => {
  const parts = () => document.querySelectorAll("[data-live]");
  if (!parts().length || !window.EventSource) return;
  let asked = false;
  const renew = async () => {
    if (asked) return;
    asked = true;
    try {
      const answer = await fetch(document.body.dataset.page, { credentials: "same-origin" });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts()) {
        const next = fresh.getElementById(part.id);
        if (next && !part.contains(document.activeElement)) part.replaceWith(document.importNode(next, true));
      }
    } finally {
      asked = false;
    }
  };
  new EventSource("/events").addEventListener("changed", renew);
})();
// Says what a statement costs while it is typed.
(() => {
  const form = document.querySelector("[data-quote]");
  if (!form) return;
  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const typed = new URLSearchParams(new FormData(form));
      typed.set("action", "quote");
      const answer = await fetch("/act", { method: "POST", body: typed, credentials: "same-origin" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("quote");
      if (fresh) document.getElementById("quote").textContent = fresh.textContent;
    }, 700);
  });
})();

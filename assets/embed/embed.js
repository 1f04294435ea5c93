/* Marks the page as a compact view, before it is drawn; and completes addresses, which only the
   browser knows. */
(() => {
  const view = new URLSearchParams(window.location.search).get("view");
  if (["compare", "alignment", "chart"].includes(view)) {
    document.documentElement.dataset.uagView = view;
  }
  const here = () => window.location.origin + window.location.pathname;
  window.uagWholeAddress = (...texts) =>
    texts.map((text) => (text || "").replaceAll("{page}", here()));
  document.addEventListener(
    "click",
    (event) => {
      const link = event.target.closest && event.target.closest("#uag-open a");
      if (!link) return;
      const query = new URLSearchParams(window.location.search);
      for (const name of ["view", "__theme"]) query.delete(name);
      link.href = here() + (query.size ? "?" + query : "");
    },
    true,
  );
})();

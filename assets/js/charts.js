// What gradio's charts lack: they are saved as pictures, and fitted when they come into sight.
window.uagCharts = window.uagCharts || (() => {
  const boxOf = (element) => element.closest(".uag-chart, #charts");

  // Dark text on white, whatever the page's theme is.
  function save(event) {
    const button = event.target.closest("button[data-picture]");
    const plot = button && boxOf(button).querySelector(".js-plotly-plot");
    if (!plot || !window.Plotly) return;
    const layout = { ...plot.layout, paper_bgcolor: "#ffffff", plot_bgcolor: "#ffffff" };
    layout.font = { ...layout.font, color: "#1c1d20" };
    const wide = { format: "png", width: 900, height: 560, scale: 2, filename: button.dataset.picture };
    window.Plotly.downloadImage({ data: plot.data, layout, config: {} }, wide);
  }

  // A chart that was drawn while its tab was hidden had no width to fit.
  function fit(box) {
    for (const plot of box.querySelectorAll(".js-plotly-plot")) {
      const room = plot.parentElement.clientWidth, drawn = plot.querySelector(".main-svg");
      if (window.Plotly && room && drawn && Math.abs(drawn.getBoundingClientRect().width - room) > 1)
        window.Plotly.relayout(plot, { width: room });
    }
  }

  return (element) => {
    element.addEventListener("click", save);
    const box = boxOf(element);
    if (!box) return;
    let waiting = 0;
    const soon = () => {
      waiting = waiting || requestAnimationFrame(() => { waiting = 0; fit(box); });
    };
    new ResizeObserver(soon).observe(box);
    new MutationObserver(soon).observe(box, { childList: true, subtree: true });
  };
})();

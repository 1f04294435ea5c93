// Saves a chart as a picture: dark text on white, whatever the page's theme is.
window.uagSaveChart = (event) => {
  const button = event.target.closest("button[data-picture]");
  const plot = button && button.closest(".uag-chart, #charts").querySelector(".js-plotly-plot");
  if (!plot || !window.Plotly) return;
  const layout = { ...plot.layout, paper_bgcolor: "#ffffff", plot_bgcolor: "#ffffff" };
  layout.font = { ...layout.font, color: "#1c1d20" };
  const wide = { format: "png", width: 900, height: 560, scale: 2, filename: button.dataset.picture };
  window.Plotly.downloadImage({ data: plot.data, layout, config: {} }, wide);
};

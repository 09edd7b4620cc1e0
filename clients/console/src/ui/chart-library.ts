/** What is used of ECharts, loaded when the first chart is drawn. */

import { BarChart, LineChart, PieChart, RadarChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, RadarComponent, TooltipComponent } from "echarts/components";
import { init, use, type EChartsCoreOption } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

use([BarChart, LineChart, PieChart, RadarChart, ScatterChart, GridComponent, LegendComponent, RadarComponent, TooltipComponent, CanvasRenderer]);

export type Option = EChartsCoreOption;

/** Draws into an element, and again whenever its size changes.
 *
 * @returns what takes the drawing away.
 */
export function create(box: HTMLElement, option: Option): () => void {
  const chart = init(box);
  chart.setOption(option);
  const sized = new ResizeObserver(() => chart.resize());
  sized.observe(box);
  return () => {
    sized.disconnect();
    chart.dispose();
  };
}

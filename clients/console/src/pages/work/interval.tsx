/** An estimate between two bounds, as a line on a scale with its numbers. */

/**
 * @param from lower end of the scale.
 * @param to upper end of the scale.
 * @param show writes a value.
 */
export function Interval(props: { estimate: number; low: number; high: number; from: number; to: number; show: (value: number) => string }) {
  const { estimate, low, high, from, to, show } = props;
  const place = (value: number) => `${Math.max(0, Math.min(100, ((value - from) / (to - from || 1)) * 100))}%`;
  const width = Math.max(0, ((Math.min(high, to) - Math.max(low, from)) / (to - from || 1)) * 100);
  return (
    <div class="interval">
      <div class="interval-track" aria-hidden="true">
        {from < 0 && to > 0 && <span class="interval-zero" style={{ left: place(0) }} />}
        <span class="interval-range" style={{ left: place(low), width: `${width}%` }} />
        <span class="interval-point" style={{ left: place(estimate) }} />
      </div>
      <span class="interval-text">
        <strong>{show(estimate)}</strong> <span class="note">{`${show(low)} – ${show(high)}`}</span>
      </span>
    </div>
  );
}

/** How values are spread: what a histogram is made of. Adding one is a few additions, and allocates nothing. */
export class Distribution {
  readonly bounds: readonly number[];
  /** How many were within each bound and beyond the one before it; the last: beyond all. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  add(value: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    counts[at] = (counts[at] as number) + 1;
    this.sum += value;
  }
}

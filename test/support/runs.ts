/**
 * Returns the number of tries of a property: `times` with SLUICE_LARGE=1, else half, and a sixth in
 * the short run.
 */
export function runs(times: number): number {
  if (process.env['SLUICE_LARGE'] === '1') return times;
  return Math.ceil(times / (process.env['SLUICE_TEST_SHORT'] === '1' ? 6 : 2));
}

/**
 * Returns how often to try a property: `times` if SLUICE_LARGE=1, a sixth of it if
 * SLUICE_TEST_SHORT=1, and half of it otherwise.
 */
export function runs(times: number): number {
  if (process.env['SLUICE_LARGE'] === '1') return times;
  return Math.ceil(times / (process.env['SLUICE_TEST_SHORT'] === '1' ? 6 : 2));
}

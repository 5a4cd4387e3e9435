/**
 * Returns how many times to check a property: `times` if SLUICE_LARGE=1, a tenth of `times` if
 * SLUICE_TEST_SHORT=1, and otherwise half of `times`.
 */
export function runs(times: number): number {
  if (process.env['SLUICE_LARGE'] === '1') return times;
  return Math.ceil(times / (process.env['SLUICE_TEST_SHORT'] === '1' ? 10 : 2));
}

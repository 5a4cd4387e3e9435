/** Returns how often a property is tried: `times`, and a third of it in the short run. */
export function runs(times: number): number {
  return process.env['SLUICE_TEST_SHORT'] === '1' ? Math.ceil(times / 3) : times;
}

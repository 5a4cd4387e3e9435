import { type LoadSeams, noSeams } from '../../load/context.ts';
import type { Environment } from '../environment.ts';

/**
 * For the fault tests only, which run real processes: SLUICE_TEST_SEAMS names the safeguards that a worker is to go
 * without (`withoutFence,withoutReplay`), so that the tests can see themselves notice. Not a setting: whoever sets it
 * loses data.
 */
export function readTestSeams(environment: Environment): LoadSeams {
  const named = (environment['SLUICE_TEST_SEAMS'] ?? '').split(',');
  const seams = Object.keys(noSeams).map((name) => [name, named.includes(name)]);
  return Object.fromEntries(seams) as Record<keyof LoadSeams, boolean>;
}

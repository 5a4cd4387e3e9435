import fc from 'fast-check';
import { afterAll, afterEach } from 'vitest';
import { cleanUp } from './cleanups.ts';

/**
 * vitest runs this module before each file. Property tests use the same values in every run, so
 * that failures can be reproduced. To use other values, set SLUICE_TEST_SEED to `random` or a
 * number.
 */
const seed = process.env['SLUICE_TEST_SEED'] ?? '20261122';

if (seed !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) });

// Only this module can register hooks for every file. The files of a worker share imported modules,
// whose bodies run only for the first file.
afterEach(() => cleanUp('test'));
afterAll(() => cleanUp('file'));

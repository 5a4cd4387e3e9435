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

// Only this module can register hooks for every file. Test files that run in the same worker share
// imported modules, so the code of a module runs only for the first of these files.
afterEach(() => cleanUp('test'));
afterAll(() => cleanUp('file'));

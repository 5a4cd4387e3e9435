import fc from 'fast-check';
import { afterAll, afterEach } from 'vitest';
import { cleanUp } from './cleanups.ts';

/**
 * vitest runs this before each file. Property tests use the same values in every run, so that a
 * failure can be repeated. Set SLUICE_TEST_SEED to `random` or a number to use other values.
 */
const seed = process.env['SLUICE_TEST_SEED'] ?? '20261122';

if (seed !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) });

// The hooks are registered here because all files in one worker share the imported modules. A
// module body runs for the first file only.
afterEach(() => cleanUp('test'));
afterAll(() => cleanUp('file'));

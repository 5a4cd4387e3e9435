import fc from 'fast-check';
import { afterAll, afterEach } from 'vitest';
import { cleanUp } from './cleanups.ts';

/**
 * vitest runs this before each file. Property tests take the same values in every run, so a failure
 * can be repeated. SLUICE_TEST_SEED=random, or a number, gives other values.
 */
const seed = process.env['SLUICE_TEST_SEED'] ?? '20261122';

if (seed !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) });

// The hooks are here, because files in one worker share the modules, which run only for the first
// file.
afterEach(() => cleanUp('test'));
afterAll(() => cleanUp('file'));

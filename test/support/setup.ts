import fc from 'fast-check';
import { afterAll, afterEach } from 'vitest';
import { cleanUp } from './cleanups.ts';

/**
 * Run by vitest before each file. Property tests take the same values in every run, so that one that failed can be
 * repeated and nothing fails by chance. Other values: SLUICE_TEST_SEED=random, or a number.
 */
const seed = process.env['SLUICE_TEST_SEED'] ?? '20261122';

if (seed !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) });

// Here, not where they are needed: files that follow one another share those modules, which are run for the first only.
afterEach(() => cleanUp('test'));
afterAll(() => cleanUp('file'));

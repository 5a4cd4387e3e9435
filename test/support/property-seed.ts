import fc from 'fast-check';

/**
 * Run by vitest before each file with property tests: they take the same values in every run, so that one that failed can be
 * repeated and nothing fails by chance. Other values: SLUICE_TEST_SEED=random, or a number.
 */
const seed = process.env['SLUICE_TEST_SEED'] ?? '20261122';

if (seed !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) });

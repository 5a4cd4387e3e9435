/**
 * Test files that repeat proofs of other files, possibly under a rarer fault. `npm run test:all`
 * runs them, but `.ci/run` and `npm test` do not.
 */
export const repeating: readonly string[] = [
  ...['api', 'compose', 'export', 'import', 'roles'].map((name) => `test/acceptance/${name}.test.ts`),
  ...['event-files', 'exports', 'finish', 'lost-api', 'neighbours', 'plans', 'queue-notify', 'soak'].map(
    (name) => `test/chaos/${name}.test.ts`,
  ),
  'test/capabilities/lake/chaos/lake.test.ts',
  'test/capabilities/undo/chaos/undo.test.ts',
  'test/contract/http/early-answers.test.ts',
  'test/contract/http/limits.test.ts',
  'test/integration/redis-forms.test.ts',
];

/** Slow test files with a proof that no other file has. `npm test` also skips them. */
export const long: readonly string[] = [
  'test/acceptance/!(delete|endings|env-example|start).test.ts',
  'test/capabilities/!(inbox)/acceptance/*.test.ts',
  'test/capabilities/inbox/lock.test.ts',
  'test/contract/http/hostile-callers.test.ts',
  'test/integration/{embedded-postgres,silent-connections,status-checks}.test.ts',
];

/**
 * Files that prove again what other files prove, or prove it under a rarer fault. `npm run
 * test:all` runs them. `.ci/run` and `npm test` skip them.
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

/**
 * Files that take a long time but prove something no other file proves. `npm test` skips these as
 * well.
 */
export const long: readonly string[] = [
  'test/acceptance/!(delete|endings|env-example|start).test.ts',
  'test/capabilities/!(inbox)/acceptance/*.test.ts',
  'test/capabilities/inbox/lock.test.ts',
  'test/contract/http/hostile-callers.test.ts',
  'test/integration/{embedded-postgres,silent-connections,status-checks}.test.ts',
];

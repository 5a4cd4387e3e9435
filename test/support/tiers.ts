/**
 * Test files that repeat proofs of other files, possibly under a rarer fault. `npm run test:all`
 * runs them, but `.ci/run` and `npm test` do not.
 */
export const repeating: readonly string[] = [
  ...['api', 'compose', 'export', 'import', 'roles'].map((name) => `test/acceptance/${name}.test.ts`),
  ...[
    'event-files',
    'exports',
    'finish',
    'lost-api',
    'neighbours',
    'plans',
    'queue-notify',
    'soak',
    'whole-service',
  ].map((name) => `test/chaos/${name}.test.ts`),
  'test/capabilities/lake/chaos/lake.test.ts',
  'test/capabilities/undo/chaos/undo.test.ts',
  'test/contract/http/early-answers.test.ts',
  'test/contract/http/limits.test.ts',
  'test/integration/redis-forms.test.ts',
];

/**
 * Slow test files with a proof that no other file has. `.ci/run` runs these files, but `npm test`
 * does not.
 */
export const long: readonly string[] = [
  'test/acceptance/*.test.ts',
  'test/capabilities/*/acceptance/*.test.ts',
  'test/capabilities/all-or-nothing/http.test.ts',
  'test/capabilities/audit/acts.test.ts',
  'test/capabilities/inbox/{inbox,lock}.test.ts',
  'test/capabilities/inspection/{as-loaded,foreign-files,linear,open-data}.test.ts',
  'test/capabilities/lake/{append,lake,races}.test.ts',
  'test/capabilities/mirror/http.test.ts',
  'test/capabilities/products/presets.test.ts',
  'test/capabilities/schedules/{command-source,schedules-confined}.test.ts',
  'test/capabilities/together/{fuzz,guard}.test.ts',
  'test/contract/http/{bulk-identify,health,hostile-callers,metrics}.test.ts',
  'test/integration/{change-log,cli-jobs,fair-shares,file-store,migrations,proxies,replication,retention}.test.ts',
  'test/integration/{embedded-postgres,silent-connections,status-checks,timeouts,windows}.test.ts',
  'test/integration/load-{back,dialects,events-property,property}.test.ts',
  'test/unit/linear-scanners.test.ts',
  'test/unit/sandbox/sandboxes.test.ts',
];

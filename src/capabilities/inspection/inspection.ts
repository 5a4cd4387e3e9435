/*
 * An inspection shows what a file contains, and what a load would store and refuse. `choose.ts`
 * proposes a map if no column is an id.
 */
import type { Capability } from '../../capability.ts';

export const inspection: Capability = {
  name: 'inspection',
  needs: ['rules'],
  sandboxTasks: async (rewriter) => ({
    inspect: (await import('./sandbox.ts')).inspectInSandbox.bind(null, rewriter),
  }),
  routes: async (options) => ({ loads: [(await import('./http.ts')).inspectImport(options)] }),
  commands: {
    inspect: async () => (await import('./cli.ts')).inspect,
    rules: async () => (await import('./cli.ts')).testRules,
  },
};

/*
 * Inspection: what a file holds and how a load would read it, before it is loaded. `inspect-file.ts` receives the beginning of the
 * file and reads it with the reader of loads; `choose.ts` proposes a map if no column is an id. Promise: an inspection shows what a
 * load would store and refuse, and loads nothing.
 */
import type { Capability } from '../../capability.ts';

export const inspection: Capability = {
  name: 'inspection',
  needs: ['rules'],
  sandboxTasks: async (rewriter) => ({ look: (await import('./sandbox.ts')).lookAt.bind(null, rewriter) }),
  routes: async (options) => ({ loads: [(await import('./http.ts')).inspectImport(options)] }),
  commands: {
    inspect: async () => (await import('./cli.ts')).inspect,
    rules: async () => (await import('./cli.ts')).testRules,
  },
};

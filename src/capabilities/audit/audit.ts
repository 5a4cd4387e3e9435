/*
 * The audit log has an entry for each act that is recorded through `src/postgres/acts.ts`. An entry
 * is committed with its act, and is kept for AUDIT_DAYS. Entries do not contain values of records.
 */
import type { Capability } from '../../capability.ts';
import { openLog } from './log.ts';
import { removeExpired } from './store.ts';

export const audit: Capability = {
  name: 'audit',
  acts: (system) => (system.config.auditDays === 0 ? null : openLog(system)),
  async maintain({ db, config: { auditDays } }) {
    return { audit_entries: auditDays === 0 ? 0 : await removeExpired(db, auditDays) };
  },
  routes: async () => ({ operations: (await import('./http.ts')).auditRoutes }),
  commands: { audit: async () => (await import('./cli.ts')).audit },
};

/*
 * Rules: what the records of an environment must hold. An operator writes them in one file (docs/rules.md), which `sluice rules apply`
 * and the API store as a version. `compile.ts` makes of a version the stage that every record passes, by every way in: `stage.ts`.
 * Promises: the ways agree; a load keeps the version that it was accepted with; no single record escapes the first.
 */
import type { RawBuilder } from 'kysely';
import type { TSchema } from 'typebox';
import type { Capability } from '../../capability.ts';
import type { JudgeContext } from '../../ingest/judge-seam.ts';
import type { LoadField } from '../../load/seam.ts';
import type { Database } from '../../postgres/database.ts';
import { missingKey, openPersonal } from '../personal/personal.ts';
import { findingsField, rulesVersionField } from './api.ts';
import { personalActionsOf, type RulesDocument } from './document.ts';
import {
  addLoadRules,
  findingsOfLoad,
  forgetFindings,
  listHashingEnvironments,
  RULES_USE,
  readLoadRules,
  readRules,
  versionOfLoad,
} from './store.ts';

function fieldOf(name: string, schema: TSchema, absent: unknown, select: RawBuilder<unknown>): LoadField {
  const isOf: LoadField['isOf'] = ({ uses }) => uses.includes(RULES_USE);
  return { name, schema, absent, isOf, select, render: (_, found) => found };
}

async function stageOf(context: JudgeContext, environmentId: number, document: RulesDocument | null) {
  if (document === null) return null;
  const { openStage } = await import('./stage.ts');
  return openStage(document, await openPersonal(context, environmentId, personalActionsOf(document)));
}

export const rules: Capability = {
  name: RULES_USE,
  needs: ['personal'],
  records: {
    use: RULES_USE,
    accept: addLoadRules,
    forget: forgetFindings,
    ofLoad: async (context, { loadId, environmentId }) =>
      stageOf(context, environmentId, await readLoadRules(context.db, loadId)),
    current: async (context, environmentId) =>
      stageOf(context, environmentId, await readDocument(context.db, environmentId)),
  },
  loads: {
    fields: [
      fieldOf('rules_version', rulesVersionField, null, versionOfLoad),
      fieldOf('findings', findingsField, [], findingsOfLoad),
    ],
  },
  /** Rules that hash need a key: no record of theirs could be stored. */
  async preflight(pool, { personalKey }) {
    const names = personalKey !== null ? [] : await listHashingEnvironments(pool);
    return names.length === 0 ? null : missingKey(names);
  },
  routes: async () => ({ rules: (await import('./http.ts')).rulesRoutes }),
  commands: { rules: async () => (await import('./cli.ts')).rules },
};

/* For capabilities that look at records and store none. */

export const isPersonal = (document: RulesDocument) => personalActionsOf(document).length > 0;

/** Returns the rules that count now; null: none were ever applied. */
export async function readDocument(db: Database, environmentId: number): Promise<RulesDocument | null> {
  return (await readRules(db, environmentId))?.document ?? null;
}

/** Opens what judges a sample of records. Personal values are hidden. */
export const openSample = async (document: RulesDocument) => (await import('./stage.ts')).openStage(document);

/** Reads rules from files, and prints what breaks them. */
export const rulesCommands = () => import('./cli.ts');

export type { RulesDocument } from './document.ts';

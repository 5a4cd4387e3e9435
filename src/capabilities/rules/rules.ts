/*
 * Rules about the content of an environment's records. The rules come from one file
 * (docs/rules.md), and each change to them is stored as a version. Every record passes through the
 * stage built by `compile.ts`. A load keeps the version with which it was accepted.
 */
import type { RawBuilder } from 'kysely';
import type { TSchema } from 'typebox';
import type { Capability } from '../../capability.ts';
import type { JudgeContext } from '../../ingest/records.ts';
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
  return { name, schema, absent, isOf, select, render: (_, value) => value };
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
  /** If rules hash values and there is no key, no affected record could be stored. */
  async preflight(pool, { personalKey }) {
    const names = personalKey !== null ? [] : await listHashingEnvironments(pool);
    return names.length === 0 ? null : missingKey(names);
  },
  routes: async () => ({ rules: (await import('./http.ts')).rulesRoutes }),
  declares: async () => (await import('./section.ts')).rulesSection,
  commands: { rules: async () => (await import('./cli.ts')).rules },
};

/* The functions below are for capabilities that inspect records without storing them. */

export const isPersonal = (document: RulesDocument) => personalActionsOf(document).length > 0;

/** Returns `null` if the environment has never had rules. */
export async function readDocument(db: Database, environmentId: number): Promise<RulesDocument | null> {
  return (await readRules(db, environmentId))?.document ?? null;
}

/** Shows `(hash)` in place of hashes. */
export const openSample = async (document: RulesDocument) => (await import('./stage.ts')).openStage(document);

export const rulesCommands = () => import('./cli.ts');

export type { RulesDocument } from './document.ts';

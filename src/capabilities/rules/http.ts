import { Type } from 'typebox';
import { MAX_RECORD_BYTES } from '../../base/limits.ts';
import { throwFileProblems } from '../../base/operator-file/read.ts';
import { worded } from '../../base/validation.ts';
import { callerKeyId } from '../../http/caller.ts';
import { type Route, route } from '../../http/route.ts';
import { object } from '../../http/schema.ts';
import { requireKeyFor } from '../personal/personal.ts';
import { rulesRecord } from './api.ts';
import { personalActionsOf } from './document.ts';
import { readRulesFile, renderRules } from './file.ts';
import { applyRules, readRules } from './store.ts';

const show = route({
  at: 'GET /v1/rules',
  operationId: 'showRules',
  summary: 'Show the rules',
  description: 'Returns what the records of the environment must hold.',
  access: 'import',
  answer: { description: 'The rules.', schema: rulesRecord.ref },
  handle: async ({ system: { db }, environment }) => renderRules(await readRules(db, environment)),
});

const body = object('The rules to apply.', {
  file: worded(
    Type.String({
      maxLength: MAX_RECORD_BYTES,
      description: 'The rules as a file, YAML or JSON: docs/rules.md.',
    }),
    'file must be the text of a rules file',
  ),
});

const apply = route({
  at: 'PUT /v1/rules',
  operationId: 'applyRules',
  summary: 'Apply rules',
  description:
    'Replaces the rules of the environment. They apply to loads accepted from then on, and to single records within a second.',
  access: 'import',
  json: {
    schema: body,
    examples: {
      plan: {
        summary: 'Allowed values',
        value: { file: 'users:\n  properties:\n    plan: { enum: [free, pro] }\n' },
      },
    },
  },
  answer: { description: 'The rules as they are now.', schema: rulesRecord.ref },
  handle: async ({ system, environment, request, body: { file } }) => {
    const { value, problems } = readRulesFile(Buffer.from(file));
    throwFileProblems('file', problems);
    requireKeyFor(system.config.personalKey, personalActionsOf(value ?? {}));
    const rules = await applyRules(system, environment, value ?? {}, callerKeyId(request));
    system.ingest.forgetStage(environment);
    return renderRules(rules);
  },
});

export const rulesRoutes: readonly Route[] = [show, apply];

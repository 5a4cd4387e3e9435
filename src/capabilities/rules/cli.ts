import { nextOf, walkPages } from '../../base/pages.ts';
import { formatCount } from '../../base/wording.ts';
import { defineCommand, parsed, parseUpTo, required, text } from '../../cli/define-command.ts';
import { UsageError } from '../../cli/errors.ts';
import { readOperatorFile, readValidFile } from '../../cli/input-files.ts';
import { withEnvironment } from '../../cli/session.ts';
import { type Columns, printable, printDone, printTable } from '../../cli/terminal.ts';
import { propertyEntities } from '../../domain/entity.ts';
import { isObject, parseJsonText } from '../../formats/json-text.ts';
import type { Database } from '../../postgres/database.ts';
import { requireKeyFor } from '../personal/personal.ts';
import { type CountedFinding, personalActionsOf, type RulesDocument } from './document.ts';
import { readRulesFile, renderRules, writeRulesFile } from './file.ts';
import { openStage } from './stage.ts';
import { applyRules, countRepeated, readRules, readStored, type StoredProperties } from './store.ts';

const MAX_CHECKED_RECORDS = 1_000_000;

const apply = defineCommand({
  name: 'apply',
  summary: 'apply a rules file',
  description:
    'Makes the rules of an environment what the file says. They apply to loads accepted from then on, and to single\n' +
    'records within a second.',
  argument: required('<file>', 'YAML or JSON; - for standard input'),
  environment: true,
  json: 'print what GET /v1/rules answers',
  examples: ['sluice rules apply rules.yaml', 'sluice rules show --env a | sluice rules apply - --env b'],
  run: async (invocation) => {
    const document = await readOperatorFile(invocation.argument, readRulesFile, invocation);
    if (document === null) return;
    await withEnvironment(invocation, async ({ system, environmentId }) => {
      requireKeyFor(system.config.personalKey, personalActionsOf(document));
      const rules = await applyRules(system, environmentId, document, null);
      const done = `Environment ${invocation.env} now has version ${rules.version} of its rules.`;
      printDone(invocation, renderRules(rules), done);
    });
  },
});

const show = defineCommand({
  name: 'show',
  summary: 'show the rules as a file',
  description: 'Shows the rules of an environment, as a file that can be applied to any.',
  json: 'print what GET /v1/rules answers',
  examples: ['sluice rules show > rules.yaml', 'sluice rules show --json | jq .version'],
  inEnvironment: async ({ system, environmentId, env, terminal, json }) => {
    const rules = await readRules(system.db, environmentId);
    if (json) return terminal.json(renderRules(rules));
    if (rules === null)
      return terminal.inform(`Environment ${env} has no rules; \`sluice rules apply\` adds some.`);
    await terminal.write(writeRulesFile(rules.document));
  },
});

export const findingColumns: Columns<CountedFinding> = {
  of: ({ entity }) => entity,
  property: ({ property }) => printable(property ?? 'event_name', 40),
  rule: ({ rule }) => rule,
  otherwise: ({ otherwise }) => otherwise,
  '>records': ({ records }) => formatCount(records),
};

const check = defineCommand({
  name: 'check',
  summary: 'count what is stored and breaks the rules',
  description:
    'Counts the stored users, companies and events that break rules, and changes nothing. Only this command finds\n' +
    'values that profiles share although a rule calls them unique.',
  options: {
    rules: text('--rules <file>', 'a rules file that is not applied yet'),
    limit: parsed('--limit <n>', 'records of each kind to look at', parseUpTo(1e12), MAX_CHECKED_RECORDS),
  },
  json: true,
  examples: ['sluice rules check', 'sluice rules check --rules rules.yaml --json | jq .findings'],
  inEnvironment: async ({ system, environmentId, env, flags, terminal, json }) => {
    const document = await rulesOf(flags.rules, system.db, environmentId);
    if (document === null)
      throw new UsageError(`Environment ${env} has no rules; \`sluice rules apply\` adds some.`);
    const { checked, findings } = await checkRules(system.db, environmentId, document, flags.limit);
    if (json) return terminal.json({ checked, findings });
    const counts = Object.entries(checked).map(([entity, count]) => `${formatCount(count)} ${entity}`);
    terminal.print(`Looked at ${counts.join(', ')}.`);
    if (findings.length > 0) printTable(terminal, findingColumns, findings);
    else terminal.inform('Nothing breaks the rules.');
  },
});

export async function rulesOf(
  file: string | undefined,
  db: Database,
  environmentId: number,
): Promise<RulesDocument | null> {
  if (file !== undefined) return readValidFile(file, readRulesFile, 'nothing was looked at');
  return (await readRules(db, environmentId))?.document ?? null;
}

export const rules = defineCommand({
  name: 'rules',
  summary: 'what records must hold: apply, show, check',
  description:
    'Rules of an environment: which properties and events there are, and which values they may have.',
  examples: ['sluice rules apply rules.yaml', 'sluice rules check --rules rules.yaml'],
  commands: [apply, show, check],
});

const CHECKED_AT_A_TIME = 5_000;

export async function checkRules(db: Database, environmentId: number, document: RulesDocument, most: number) {
  const stage = openStage(document);
  const checked = { users: 0, companies: 0, events: 0 };
  const repeated: CountedFinding[] = [];
  for (const entity of propertyEntities) {
    if (document[entity] === undefined) continue;
    const read = async (after: StoredProperties | null) => {
      const limit = Math.min(CHECKED_AT_A_TIME, most - checked[entity]);
      const page = await readStored(db, environmentId, entity, after, limit);
      checked[entity] += page.length;
      const hasMore = page.length === limit && checked[entity] < most;
      return { page, next: nextOf(page, hasMore, (last) => last) };
    };
    for await (const { page } of walkPages(null, read)) {
      for (const { eventName, metadata } of page) {
        const parsed = parseJsonText(metadata);
        const properties = !('code' in parsed) && isObject(parsed.value) ? parsed.value : {};
        const { findings } = stage.judgeProperties(entity, properties, { eventName: eventName ?? undefined });
        stage.findings.add(findings);
      }
    }
    // Loads do not check whether values are unique.
    for (const [property, { unique }] of Object.entries(document[entity].properties ?? {})) {
      if (unique !== true || entity === 'events') continue;
      const records = await countRepeated(db, environmentId, entity, property);
      if (records > 0) repeated.push({ entity, property, rule: 'unique', otherwise: 'report', records });
    }
  }
  return { checked, findings: [...stage.findings.all, ...repeated] };
}

/** `sluice rules`: what the records of an environment must hold. */
import { MAX_CHECKED_RECORDS } from '../domain/limits.ts';
import type { RulesDocument } from '../domain/rules.ts';
import { formatCount, plural } from '../domain/wording.ts';
import { renderInspection } from '../load/inspect/inspect-file.ts';
import type { Database } from '../postgres/database.ts';
import { applyRules, readRules } from '../postgres/stores/rules.ts';
import { checkRules } from '../rules/check-rules.ts';
import { readRulesFile, renderRules, writeRulesFile } from '../rules/rules-file.ts';
import { defineCommand, parsed, parseUpTo, required, text } from './define-command.ts';
import { UsageError } from './errors.ts';
import { findInputs, readOperatorFile, readValidFile } from './input-files.ts';
import { findingColumns, lookAt, printBroken } from './inspect.ts';
import { withEnvironment } from './session.ts';
import { readSettings } from './settings.ts';
import { fileFlags, readSourceFlags } from './source-flags.ts';
import { printDone, printTable } from './terminal.ts';

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
      system.personal.requireKeyFor(document);
      const rules = await applyRules(system.db, environmentId, document, null);
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

const test = defineCommand({
  name: 'test',
  summary: 'show what the rules would do to a file',
  description:
    'Looks at the beginning of a file and loads nothing: which records the rules would refuse, and what they would report or\n' +
    'leave out. Takes the options of `import`.',
  argument: required('<file>', 'a file, or - for standard input'),
  options: { rules: text('--rules <file>', 'a rules file that is not applied yet'), ...fileFlags },
  json: 'print what POST /v1/imports/inspect answers',
  examples: [
    'sluice rules test users.csv',
    'sluice rules test users.csv --rules rules.yaml --json | jq .findings',
  ],
  inEnvironment: async (call) => {
    const { cli, command, system, environmentId, argument, flags, terminal, json } = call;
    const { entity = 'auto' as const, map, preset = null, format = null } = flags;
    const [input, ...others] = await findInputs([argument]);
    if (input === undefined || others.length > 0) throw new UsageError('Name one file.');
    const document = await rulesOf(flags.rules, system.db, environmentId);
    const asked = { entity, map, preset, format, source: readSourceFlags(flags) };
    const found = await lookAt(input, readSettings(cli, command).config, asked, document);
    if (json) return terminal.json(renderInspection(found));
    if (found.problem !== null) throw found.problem;
    const { records, whole_file: isWhole, rejects } = found;
    const share = isWhole ? 'all' : 'the first';
    terminal.print(`${share} ${plural(records, 'record')}: ${formatCount(rejects.count)} would be refused`);
    printBroken(terminal, found);
  },
});

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

async function rulesOf(
  file: string | undefined,
  db: Database,
  environmentId: number,
): Promise<RulesDocument | null> {
  if (file !== undefined) return readValidFile(file, readRulesFile, 'nothing was looked at');
  return (await readRules(db, environmentId))?.document ?? null;
}

export const rules = defineCommand({
  name: 'rules',
  summary: 'what records must hold: apply, show, test, check',
  description:
    'Rules of an environment: which properties and events there are, and which values they may have.',
  examples: ['sluice rules test users.csv --rules rules.yaml', 'sluice rules apply rules.yaml'],
  commands: [apply, show, test, check],
});

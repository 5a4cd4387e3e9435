/** `sluice rules`: what the records of an environment must hold. */
import { applyRules, readRules } from '../postgres/stores/rules.ts';
import { readRulesFile, renderRules, writeRulesFile } from '../rules/rules-file.ts';
import { defineCommand, required } from './define-command.ts';
import { readOperatorFile } from './input-files.ts';
import { withEnvironment } from './session.ts';
import { printDone } from './terminal.ts';

const apply = defineCommand({
  name: 'apply',
  summary: 'apply a rules file',
  description:
    'Makes the rules of an environment what the file says. They count for loads that are accepted from then on, and for single\n' +
    'records within a second.',
  argument: required('<file>', 'YAML or JSON; - for standard input'),
  environment: true,
  json: 'print what GET /v1/rules answers',
  examples: ['sluice rules apply rules.yaml', 'sluice rules show --env a | sluice rules apply - --env b'],
  run: async (invocation) => {
    const document = await readOperatorFile(invocation.argument, readRulesFile, invocation);
    if (document === null) return;
    await withEnvironment(invocation, async ({ system, environmentId }) => {
      const rules = await applyRules(system.db, environmentId, document, null);
      const done = `Environment ${invocation.env} has version ${rules.version} of its rules now.`;
      printDone(invocation, renderRules(rules), done);
    });
  },
});

const show = defineCommand({
  name: 'show',
  summary: 'the rules as a file',
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

export const rules = defineCommand({
  name: 'rules',
  summary: 'what records must hold: apply, show',
  description:
    'Rules of an environment: which properties and events there are, and which values they may have.',
  examples: ['sluice rules apply rules.yaml', 'sluice rules show'],
  commands: [apply, show],
});

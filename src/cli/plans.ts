/** Plans as a person reads them, and applying one. */
import { onDriftChoices } from '../domain/load.ts';
import { formatCount } from '../domain/wording.ts';
import { applyPlan } from '../load/apply-plan.ts';
import { type ShownPlan, showPlan } from '../load/plans.ts';
import { planJson, renderLoadListItem } from '../load/render-load.ts';
import { requireLoad } from '../postgres/stores/read-loads.ts';
import { defineCommand } from './define-command.ts';
import { columnsOf, printable, printTable } from './format.ts';
import { flag, parseJobId, required } from './options.ts';
import type { Terminal } from './terminal.ts';

const jobId = required('<job-id>', '', parseJobId);

export const planOfJob = defineCommand({
  name: 'plan',
  summary: 'what a planned load would do',
  description:
    'Shows what a load with --plan would change: profiles, values by property, some rows before and after.',
  argument: jobId,
  environment: true,
  json: 'print the plan as JSON',
  examples: ['sluice jobs plan 0195…', 'sluice jobs plan 0195… --json | jq .values'],
  inEnvironment: async ({ system, environmentId, baseUrl, argument, json, terminal }) => {
    const plan = await showPlan(system, environmentId, argument);
    if (json) terminal.print(planJson(plan, baseUrl));
    else printPlan(terminal, plan);
  },
});

export const applyPlanOfJob = defineCommand({
  name: 'apply',
  summary: 'load a plan',
  description:
    'Queues a plan to be loaded, with the same file and options. If profiles have changed since, nothing is written,\n' +
    'unless --proceed is given.',
  argument: jobId,
  options: { proceed: flag('--proceed', 'load it even if profiles have changed since') },
  environment: true,
  json: 'print the job record as JSON',
  examples: ['sluice jobs apply 0195…', 'sluice jobs apply 0195… --proceed --json'],
  inEnvironment: async ({ system, environmentId, baseUrl, argument, flags, json, terminal }) => {
    await applyPlan(system, environmentId, argument, onDriftChoices[flags.proceed ? 1 : 0]);
    const load = await requireLoad(system, environmentId, argument);
    if (json) terminal.json(renderLoadListItem(load, baseUrl));
    else terminal.print(`Queued. To follow it: sluice jobs show ${argument} --watch`);
  },
});

/** The summary as tables. */
export function printPlan(terminal: Terminal, { summary, sample, jobId: id }: ShownPlan): void {
  const { profiles, values, properties, morePropertyNames } = summary;
  const counted = ([entity, { new: created, changed }]: [string, { new: number; changed: number }]) => [
    entity,
    formatCount(created),
    formatCount(changed),
  ];
  printTable(terminal, columnsOf('profiles', '>new', '>changed'), Object.entries(profiles).map(counted));
  terminal.print('');
  const cells = ({ appear, change, go, retype }: typeof values) =>
    [appear, change, go, retype].map(formatCount);
  const rows = properties
    .slice(0, shownProperties)
    .map((each) => [each.entity, printable(each.name, 40), ...cells(each), each.isNew ? 'new' : '']);
  const heads = columnsOf('entity', 'property', '>added', '>changed', '>removed', '>type changed', '');
  printTable(terminal, heads, [...rows, ['all', '', ...cells(values), '']]);
  const more = properties.length - rows.length + morePropertyNames;
  if (more > 0) terminal.print(`… and ${formatCount(more)} more ${more === 1 ? 'property' : 'properties'}`);
  if (sample.length > 0) {
    terminal.print('');
    const sampled = sample
      .slice(0, shownRows)
      .map((row) => [
        row.entity,
        printable(row.key, 40),
        printable(row.before, 60),
        printable(row.after, 60),
      ]);
    printTable(terminal, columnsOf('entity', 'id', 'before', 'after'), sampled);
  }
  terminal.print('');
  terminal.print(`To load it: sluice jobs apply ${id}`);
}

const shownProperties = 20;
const shownRows = 10;

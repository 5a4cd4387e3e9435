import { formatCount } from '../../base/wording.ts';
import { defineCommand, flag, jobIdArgument } from '../../cli/define-command.ts';
import { printable, printDone, printRecords, printTable, type Terminal } from '../../cli/terminal.ts';
import { onDriftChoices, type PlannedEvents } from '../../domain/load.ts';
import { renderJobListItem } from '../../http/render.ts';
import { queueLoad, queues } from '../follow.ts';
import { requireLoad } from '../read-store.ts';
import { planJson } from '../render-load.ts';
import { applyPlan, releaseLoad } from '../retry.ts';
import { type ShownPlan, showPlan } from './plans.ts';

export const release = defineCommand({
  name: 'release',
  summary: 'load a file that its guard holds',
  description:
    'Queues a held load: its file is loaded although it differs from what its guard expects. `sluice jobs cancel` discards it.',
  ...queues,
  examples: ['sluice jobs list --status held', 'sluice jobs release 0195… --wait'],
  run: async (invocation) => {
    const { argument: jobId, flags } = invocation;
    await queueLoad(invocation, flags.wait, async ({ system, environmentId }) => {
      await releaseLoad(system, environmentId, jobId, { kind: 'command_line', name: null });
      return jobId;
    });
  },
});

export const plan = defineCommand({
  name: 'plan',
  summary: 'what a planned load would do',
  description:
    'Shows what a load with --plan would change: profiles, values by property, some rows before and after.',
  argument: jobIdArgument,
  json: 'print the plan as JSON',
  examples: ['sluice jobs plan 0195…', 'sluice jobs plan 0195… --json | jq .values'],
  inEnvironment: async ({ system, environmentId, baseUrl, argument, json, terminal }) => {
    const plan = await showPlan(system, environmentId, argument);
    if (json) terminal.print(planJson(plan, baseUrl));
    else printPlan(terminal, plan);
  },
});

export const apply = defineCommand({
  name: 'apply',
  summary: 'load a plan',
  description:
    'Queues a plan to be loaded, with the same file and options. If profiles have changed since, nothing is written,\n' +
    'unless --proceed is given.',
  argument: jobIdArgument,
  options: { proceed: flag('--proceed', 'load it even if profiles have changed since') },
  json: 'print the job record as JSON',
  examples: ['sluice jobs apply 0195…', 'sluice jobs apply 0195… --proceed --json'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument, flags } = call;
    await applyPlan(system, environmentId, argument, onDriftChoices[flags.proceed ? 1 : 0]);
    const load = await requireLoad(system, environmentId, argument);
    printDone(
      call,
      renderJobListItem(load, call.baseUrl),
      `Queued. To follow it: sluice jobs show ${argument} --watch`,
    );
  },
});

const shownProperties = 20;
const shownRows = 10;

export function printPlan(terminal: Terminal, { summary, sample, jobId: id }: ShownPlan): void {
  const { profiles, values, properties, morePropertyNames, events } = summary;
  printRecords(
    terminal,
    Object.entries(profiles).map(([entity, counts]) => ({ profiles: entity, ...counts })),
  );
  terminal.print('');
  const shown = properties.slice(0, shownProperties);
  printTable(
    terminal,
    {
      entity: ({ entity }) => entity,
      property: ({ name }) => printable(name, 40),
      '>added': ({ appear }) => appear,
      '>changed': ({ change }) => change,
      '>removed': ({ go }) => go,
      '>type changed': ({ retype }) => retype,
      '': ({ isNew }) => (isNew ? 'new' : ''),
    },
    [...shown, { ...values, entity: 'all', name: '', isNew: false }],
  );
  const more = properties.length - shown.length + morePropertyNames;
  if (more > 0) terminal.print(`… and ${formatCount(more)} more ${more === 1 ? 'property' : 'properties'}`);
  terminal.print('');
  printEvents(terminal, events);
  const rows = sample.slice(0, shownRows).map(({ key: id, ...row }) => ({ id, ...row }));
  if (rows.length > 0) printRecords(terminal, rows, ['entity', 'id', 'before', 'after']);
  terminal.print(`To load it: sluice jobs apply ${id}`);
}

function printEvents(terminal: Terminal, { names, moreNames, days, earlierDays }: PlannedEvents): void {
  if (names.length === 0) return;
  const more = (count: number, what: string) =>
    count > 0 && terminal.print(`… and ${formatCount(count)} ${what}`);
  const shown = names.slice(0, shownProperties);
  printTable(terminal, { event: ({ name }) => printable(name, 40), '>added': ({ count }) => count }, shown);
  more(names.length - shown.length + moreNames, 'more names');
  terminal.print('');
  const latest = days.slice(-shownProperties);
  printTable(terminal, { day: ({ day }) => day, '>added': ({ count }) => count }, latest);
  more(days.length - latest.length + earlierDays, 'earlier days');
  terminal.print('');
}

/** `sluice report`: what is stored, to be compared with what another product counts. */
import { readRangeEnd } from '../domain/instant.ts';
import { formatCount, plural } from '../domain/wording.ts';
import { makeReport, reportCsv } from '../profiles/report.ts';
import { defineCommand, flag, text } from './define-command.ts';
import { UsageError } from './errors.ts';
import { printable, printFields, printTable } from './terminal.ts';

const shownNames = 50;

export const report = defineCommand({
  name: 'report',
  summary: 'events by name and day, users with and without profile and company',
  description:
    'Counts what an environment has, all of one moment, to compare it with another product after a move.\n' +
    'Users without a profile are mostly anonymous ids that were never joined to a user.',
  options: {
    from: text('--from <date>', 'only events from this day (UTC) or ISO 8601 instant on'),
    to: text('--to <date>', 'only events up to this day, which is included, or before this instant'),
    csv: flag('--csv', 'print the events by day and name as CSV'),
  },
  environment: 'environment to report',
  json: true,
  examples: [
    'sluice report --from 2026-11-01 --to 2026-11-30',
    'sluice report --csv > days.csv',
    'sluice report --json | jq .users',
  ],
  inEnvironment: async ({ system, environmentId, flags, terminal, json }) => {
    for (const [name, given] of Object.entries({ from: flags.from, to: flags.to })) {
      if (given !== undefined && readRangeEnd(given) === null)
        throw new UsageError(`--${name} is a day such as 2026-11-20, or an ISO 8601 instant.`);
    }
    const made = await makeReport(system, environmentId, flags);
    if (flags.csv) return terminal.write(reportCsv(made));
    if (json) return terminal.json(made);
    const { profiles, with_company, without_company, with_events, without_profile } = made.users;
    printFields(terminal, {
      events: formatCount(made.events),
      users: `${formatCount(profiles)}: ${formatCount(with_company)} with a company, ${formatCount(without_company)} without`,
      'users of events': `${formatCount(with_events)}: ${formatCount(without_profile)} without a profile`,
      companies: formatCount(made.companies),
    });
    if (made.event_names.length === 0) return;
    terminal.print('');
    const shown = made.event_names.slice(0, shownNames);
    printTable(
      terminal,
      { event: ({ event_name }) => printable(event_name, 60), '>events': ({ events }) => events },
      shown,
    );
    const more = made.event_names.length - shown.length;
    if (more > 0) terminal.print(`and ${plural(more, 'more name')}: --json has all, --csv the days`);
  },
});

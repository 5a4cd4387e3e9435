import { report } from '../../api/report.ts';
import { exampleText } from '../../api/schema.ts';
import { makeReport, reportCsv } from '../../profiles/report.ts';
import { pageBytes } from '../page.ts';
import { optionalChoice, rangeEnd } from '../parameters.ts';
import { lenientQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';

const show = route({
  at: 'GET /v1/report',
  operationId: 'showReport',
  summary: 'Report what is stored',
  description:
    'Counts events by day and name, and users with and without profile and company, all of one moment: to compare with another product after a move. Returns 503 if counting takes more than a minute; ask for fewer days then.',
  access: 'read',
  config: pageBytes,
  query: lenientQuery({
    from: rangeEnd('from', 'Only count events from this day (UTC) or ISO 8601 instant on.'),
    to: rangeEnd('to', 'Only count events up to this day, inclusive, or before this instant.'),
    format: optionalChoice(
      ['json', 'csv'],
      'format is json or csv',
      '`csv`: the events by day and name.',
      'json',
    ),
  }),
  answer: {
    description: 'The report.',
    headers: ['Content-Disposition'],
    content: {
      'application/json': { schema: report.ref },
      'text/csv': exampleText(
        'The events by day and name.',
        'days',
        'One day',
        'day,event_name,events\n2026-11-20,report_shared,120\n',
      ),
    },
  },
  refuses: ['invalid_date', 'invalid_range'],
  handle: async ({ system, query, environment, reply }) => {
    const made = await makeReport(system, environment, query);
    if (query.format !== 'csv') return reply.send(made);
    return reply
      .header('content-disposition', 'attachment; filename="report.csv"')
      .type('text/csv; charset=utf-8')
      .send(reportCsv(made));
  },
});

export const reportRoutes: readonly Route[] = [show];

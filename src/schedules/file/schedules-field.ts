import { MAX_EXPORT_EMAILS, MAX_SCHEDULES } from '../../domain/limits.ts';
import { type Field, maybe, optional } from '../../operator-file/field.ts';
import { keyedList, listOf } from '../../operator-file/list-field.ts';
import { objectOf } from '../../operator-file/object-field.ts';
import { choice, flag, text } from '../../operator-file/scalar-fields.ts';
import { missedPolicies, type Notify, notifiedEnds, overlapPolicies, type Schedule } from '../schedule.ts';
import { cronField, duration, mailField, timeZoneField } from './text-fields.ts';
import { exportField, loadField } from './work-fields.ts';

const dayMs = 24 * 60 * 60 * 1000;
const namePattern = [
  '^[a-z0-9][a-z0-9_-]{0,62}$',
  'must be 1 to 63 of a-z, 0-9, _ and -, the first a letter or digit',
] as const;

const notify: Field<Notify> = objectOf('notify', 'Who is told of the end of a run.', {
  emails: listOf(mailField, 'Addresses.', MAX_EXPORT_EMAILS),
  on: optional(listOf(choice(notifiedEnds, 'An end.'), 'Of which ends; default: all.', 3), notifiedEnds),
});

const schedule = objectOf('a schedule', 'Something to do when it is due: a load or an export.', {
  name: text({
    maxChars: 63,
    pattern: namePattern,
    description: 'What its runs are listed under; its memory hangs on it.',
  }),
  environment: optional(
    text({ maxChars: 63, pattern: namePattern, description: 'Name of the environment.' }),
    'default',
  ),
  cron: cronField,
  timezone: maybe(timeZoneField),
  enabled: optional(flag('false: it is not due at all.'), true),
  missed: optional(
    choice(
      missedPolicies,
      'What to do when nobody was there at a due time: the latest, all of them, or nothing.',
    ),
    'run_once',
  ),
  missed_within: optional(
    duration('Due times longer ago than this are not made up.', 60_000, 31 * dayMs),
    dayMs,
  ),
  overlap: optional(choice(overlapPolicies, 'What to do when the run before is still going.'), 'skip'),
  notify: maybe(notify),
  load: maybe(loadField),
  export: maybe(exportField),
});

const scheduleField: Field<typeof schedule extends Field<infer T> ? T : never> = {
  schema: { ...schedule.schema, oneOf: [{ required: ['load'] }, { required: ['export'] }] },
  read(node, problems) {
    const value = schedule.read(node, problems);
    if (node.kind !== 'object') return value;
    const works = node.members.filter(({ name }) => name === 'load' || name === 'export');
    if (works.length !== 1) {
      problems.note(works[1] ?? node, node.path, 'must have either load or export');
      return undefined;
    }
    return value;
  },
};

const file = objectOf('a schedules file', 'What is to be loaded and exported, and when.', {
  timezone: optional(timeZoneField, 'UTC'),
  schedules: keyedList(scheduleField, 'The schedules.', MAX_SCHEDULES, 'name'),
});

/** A whole schedules file: how it is read, and its JSON Schema. */
export const schedulesField: Field<readonly Schedule[]> = {
  schema: file.schema,
  read(node, problems) {
    const value = file.read(node, problems);
    return value?.schedules.flatMap(({ timezone, missed_within, load, export: exported, ...rest }) => {
      const work = load ?? exported;
      if (work === null) return [];
      return [{ ...rest, timeZone: timezone ?? value.timezone, missedWithinMs: missed_within, work }];
    });
  },
};

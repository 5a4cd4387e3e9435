import type { Static } from 'typebox';
import { propertyEntities } from '../../domain/entity.ts';
import {
  choice,
  count,
  defineRecord,
  listOf,
  object,
  ordinal,
  orNull,
  record,
  text,
  time,
} from '../../http/schema.ts';

/**
 * A value that breaks a rule is only counted (`report`) or is omitted (`strip`), or its record is
 * refused.
 */
export const remedies = ['report', 'strip', 'refuse'] as const;

export const ruleFinding = object('A rule that records broke.', {
  entity: choice(propertyEntities, 'Kind of records.'),
  property: orNull(text('Name of the property. Null if the name of the event broke the rule.', 'plan')),
  rule: text('The rule, by its name in the rules file; `unknown`: the property is not listed.', 'enum'),
  otherwise: choice(remedies, 'What happened to the value: `report` kept it, `strip` left it out.'),
  records: count('Number of records.', 12),
});

export const rulesVersionField = orNull(
  ordinal('Version of the rules that the load was accepted with. Null if there were none.'),
);

export const findingsField = listOf(
  'Rules that records broke without being refused, with the number of these records.',
  ruleFinding,
);

export type RuleFinding = Static<typeof ruleFinding>;

export const rulesRecord = defineRecord(
  'Rules',
  'The rules that the records of an environment must keep to.',
  {
    version: count('Version of the rules. 0 if none were ever applied.', 3),
    applied_at: orNull(time('When they were applied. Null if none were.', '2026-11-20T12:34:56.123Z')),
    applied_by: orNull(
      text('ID of the API key. Null for the command line, or if none were applied.', 'k3f9'),
    ),
    file: text('The rules as a YAML file.', 'users:\n  unknown: report\n'),
    document: record({
      additionalProperties: true,
      description: 'The same as an object: docs/schemas/rules.schema.json.',
    }),
  },
);
export type RulesRecord = Static<typeof rulesRecord.schema>;

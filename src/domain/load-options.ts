/** Members of an operator's file that describe a load. */

import { type Static, type TObject, type TSchema, Type } from 'typebox';
import { MAX_MAPPED_COLUMNS } from '../base/limits.ts';
import type { Place } from '../base/operator-file/read.ts';
import { choice, rule, text, withDefault } from '../base/operator-file/schema.ts';
import { ruled, uuidPattern } from '../base/validation.ts';
import {
  guardPattern,
  guardRule,
  readLimits,
  readVolumeGuard,
  type VolumeGuard,
  volumeGuardRule,
} from '../domain/guards.ts';
import type { FileOptions } from '../domain/load.ts';
import { presets, sourceFormats } from '../domain/source.ts';
import type { LoadEntity } from './entity.ts';
import type { GivenSource, OptionTable } from './option-table.ts';

const guard = (description: string) =>
  Type.Union(
    [Type.Integer({ minimum: 0, maximum: 999_999_999_999_999 }), Type.String({ pattern: guardPattern })],
    { description: `${description} Nothing of it is written then.`, problem: rule(guardRule) },
  );

const volumeGuard = ruled(
  Type.Unsafe<VolumeGuard>({
    type: ['string', 'object'],
    additionalProperties: true,
    description:
      'Holds a file that is unlike the latest loads of the same source (usual), or unlike these figures, until a person decides.',
    examples: ['usual', { rows: '900..1100', max_rejected: '2%', columns: ['user_id', 'plan'] }],
    problem: rule(volumeGuardRule),
  }),
  (value) => (readVolumeGuard(value) === undefined ? rule(volumeGuardRule)(value) : null),
);

const columnMap = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  description: 'Their header → our name.',
  additionalProperties: {
    type: 'string',
    description: 'Our name.',
    minLength: 1,
    maxLength: 255,
    problem: rule('must be our name for the column'),
  },
  maxProperties: MAX_MAPPED_COLUMNS,
  problem: (value: unknown, keyword: string) =>
    keyword === 'maxProperties'
      ? `has more than ${MAX_MAPPED_COLUMNS} names`
      : rule('must be pairs such as `Customer ID: user_id`')(value),
});

function sourceMembers(table: OptionTable): Record<never, TSchema> {
  return Object.fromEntries(table.names.map((name) => [name, Type.Optional(sourceMember(table, name))]));
}

/**
 * If an option must be text, the message advises quotes, because YAML reads `header: 3` as a
 * number.
 */
function sourceMember(table: OptionTable, name: string): TSchema {
  const option = table.option(name);
  const isText = option.type === 'string' || option.type === 'array';
  const problem = (value: unknown) => {
    const cure = isText && typeof value !== 'string' ? '; put text in quotes' : '';
    return rule(option.rule)(value) + cure;
  };
  const schema = table.schemaOf(name);
  const member = Type.Unsafe<unknown>({
    ...schema,
    type: option.fileTypes ?? schema.type,
    ...(schema.items !== undefined && { items: { ...schema.items, problem } }),
    problem,
  });
  return ruled(member, (value) => (table.problem(name, value) === null ? null : rule(option.rule)(value)));
}

/** Callers add `entity`. */
export const loadMembers = (table: OptionTable) => ({
  map: withDefault(columnMap, {}),
  preset: Type.Optional(choice(presets, 'The product whose export files they are; not together with map.')),
  options_of: Type.Optional(
    text({
      maxChars: 36,
      pattern: [uuidPattern, 'must be the job_id of an earlier load'],
      description: 'The earlier load that gives the options which are left out here.',
    }),
  ),
  max_errors: Type.Optional(guard('More refused records than this, a number or a share, fail the load.')),
  max_changed: Type.Optional(
    guard('If more profiles than this would be changed, a number or a share of the records, the load fails.'),
  ),
  max_removed_values: Type.Optional(
    guard(
      'If more values of properties than this would be removed, a number or a share of the records, the load fails.',
    ),
  ),
  guard: Type.Optional(volumeGuard),
  if_duplicate: withDefault(
    choice(
      ['skip', 'load', 'reject'],
      'What to do with bytes that were loaded before; skip and reject count those that are being loaded.',
    ),
    'skip',
  ),
  format: Type.Optional(choice(sourceFormats, 'Default: found out.')),
  ...sourceMembers(table),
});

type LoadMembers = ReturnType<typeof loadMembers>;

export function toFileOptions(
  table: OptionTable,
  members: Static<TObject<LoadMembers>>,
  entity: LoadEntity,
): FileOptions {
  return {
    entity,
    map: members.map,
    preset: members.preset ?? null,
    optionsOf: members.options_of ?? null,
    ...readLimits(members),
    guard: readVolumeGuard(members.guard) ?? null,
    ifDuplicate: members.if_duplicate,
    format: members.format ?? null,
    source: table.read(members as GivenSource),
  };
}

export function checkLoad(table: OptionTable, load: Place): void {
  const { value } = load;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  const source = table.read(value as GivenSource);
  const needs = 'options_of' in value ? [] : table.unmetNeeds(source);
  for (const { name, what } of [...table.contradictions(source), ...needs]) {
    load.at([name]).reportName(what);
  }
}

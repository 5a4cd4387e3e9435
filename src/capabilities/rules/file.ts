import { type Static, Type } from 'typebox';
import { stringify } from 'yaml';
import { MAX_EVENT_NAME_BYTES, MAX_OPERATOR_FILE_ITEMS, MAX_VALUE_BYTES } from '../../base/limits.ts';
import {
  type FileReading,
  type OperatorFile,
  type Place,
  publishedSchema,
  readOperatorFile,
} from '../../base/operator-file/read.ts';
import {
  atMostBytes,
  choice,
  flag,
  listOf,
  objectOf,
  rule,
  text,
  wholeNumber,
} from '../../base/operator-file/schema.ts';
import { type RulesRecord, remedies } from './api.ts';
import { type RulesDocument, ruleTypes } from './document.ts';
import { patternProblem } from './pattern.ts';
import type { AppliedRules } from './store.ts';

const MAX_RULED_PROPERTIES = 500;
const MAX_PATTERN_CHARS = 500;

const number = (description: string) => Type.Number({ description, problem: rule('must be a number') });

const propertyRule = objectOf('a property', 'What the values of a property must be.', {
  type: Type.Optional(
    choice(ruleTypes, 'The type. A text that stands for it is converted: `"42"` to 42, `"true"` to true.'),
  ),
  required: Type.Optional(flag('Every record must have a value for it.')),
  pattern: Type.Optional(
    text({
      maxChars: MAX_PATTERN_CHARS,
      pattern: ['^', ''],
      problem: patternProblem,
      description: 'A regular expression that texts must match somewhere, or as a whole between `^` and `$`.',
    }),
  ),
  enum: Type.Optional(
    Type.Array(Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
      description: 'The values that are allowed.',
      minItems: 1,
      maxItems: MAX_OPERATOR_FILE_ITEMS,
    }),
  ),
  minimum: Type.Optional(number('The smallest number allowed.')),
  maximum: Type.Optional(number('The largest number allowed.')),
  minLength: Type.Optional(wholeNumber('The fewest characters that a text may have.', 0, MAX_VALUE_BYTES)),
  maxLength: Type.Optional(wholeNumber('The most characters that a text may have.', 0, MAX_VALUE_BYTES)),
  unique: Type.Optional(
    flag('No other profile has the value. `sluice rules check` counts the profiles that share one.'),
  ),
  otherwise: Type.Optional(
    choice(
      remedies,
      'What happens to a value that breaks a rule: it is counted (the default), left out, or its record is refused.',
    ),
  ),
  personal: Type.Optional(choice(['drop', 'hash'], 'What is stored in place of a personal value.')),
});

const properties = Type.Optional(
  Type.Unsafe<Readonly<Record<string, Static<typeof propertyRule>>>>({
    type: 'object',
    description: 'The rules of properties, by name.',
    additionalProperties: propertyRule,
    maxProperties: MAX_RULED_PROPERTIES,
    problem: rule(`must be names of properties with their rules, at most ${MAX_RULED_PROPERTIES}`),
  }),
);
const unknown = Type.Optional(
  choice(['allow', ...remedies], 'What happens to properties that are not listed: allowed by default.'),
);

const profileRules = (what: string) =>
  Type.Optional(objectOf(what, `The rules of ${what}.`, { properties, unknown }));

const rulesSchema = objectOf('a rules file', 'What the records of one environment must hold.', {
  users: profileRules('users'),
  companies: profileRules('companies'),
  events: Type.Optional(
    objectOf('events', 'The rules of events.', {
      names: Type.Optional(
        listOf(
          text({
            maxChars: MAX_EVENT_NAME_BYTES,
            problem: atMostBytes(MAX_EVENT_NAME_BYTES),
            description: 'The name of an event.',
          }),
          'The events that exist.',
          MAX_OPERATOR_FILE_ITEMS,
        ),
      ),
      other_names: Type.Optional(
        choice(['report', 'refuse'], 'What happens to events with another name: refused by default.'),
      ),
      properties,
      unknown,
    }),
  ),
});

export const rulesFile: OperatorFile<typeof rulesSchema> = {
  schema: rulesSchema,
  emptyHint: 'a file without rules is written `users: {}`',
  check(root) {
    for (const entity of ['users', 'companies', 'events']) {
      const listed = root.at([entity, 'properties']);
      for (const name of Object.keys((listed.value ?? {}) as object))
        checkProperty(listed.at([name]), entity);
    }
  },
};

function checkProperty(place: Place, entity: string): void {
  const { value } = place;
  if (typeof value !== 'object' || value === null) return;
  const { required, otherwise = 'report', unique, ...rule } = value as Record<string, unknown>;
  if (required === true && otherwise === 'strip')
    place.at(['otherwise']).report('cannot be strip for a required property; use report or refuse');
  if (unique === true && entity === 'events')
    place.at(['unique']).report('is a rule for users and companies only');
  if (
    (rule['minimum'] ?? rule['maximum']) !== undefined &&
    !['number', 'integer'].includes(String(rule['type']))
  )
    place.report('has minimum or maximum, and so needs `type: number` or `type: integer`');
}

export function readRulesFile(bytes: Uint8Array): FileReading<RulesDocument> {
  return readOperatorFile(bytes, rulesFile) as FileReading<RulesDocument>;
}

export function rulesFileSchema(): object {
  return publishedSchema('rules', 'Rules of sluice', rulesSchema);
}

export function writeRulesFile(document: RulesDocument): string {
  return stringify(document, {
    version: '1.2',
    schema: 'core',
    aliasDuplicateObjects: false,
    lineWidth: 100,
  });
}

export function renderRules(rules: AppliedRules | null): RulesRecord {
  const document = rules?.document ?? {};
  return {
    version: rules?.version ?? 0,
    applied_at: rules?.appliedAt.toISOString() ?? null,
    applied_by: rules?.appliedBy ?? null,
    file: writeRulesFile(document),
    document: { ...document },
  };
}

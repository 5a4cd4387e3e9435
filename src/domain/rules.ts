/** The rules of an environment: what its records must hold, and what becomes of personal values. Written in one file (docs/rules.md). */
import { type Entity, entities, type PropertyEntity } from './entity.ts';

export const ruleTypes = ['text', 'number', 'integer', 'boolean', 'date', 'list', 'object'] as const;
/** A remedy says what happens to a value that breaks a rule: it is counted, left out, or its record is refused. */
export const remedies = ['report', 'strip', 'refuse'] as const;
export type Remedy = (typeof remedies)[number];
export const personalActions = ['drop', 'hash', 'truncate', 'encrypt'] as const;
export type PersonalAction = (typeof personalActions)[number];

/** The words are those of JSON Schema 2020-12 where it has them. */
export interface PropertyRule {
  readonly type?: (typeof ruleTypes)[number];
  readonly required?: boolean;
  readonly pattern?: string;
  readonly enum?: readonly (string | number | boolean)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** No other profile has the value. */
  readonly unique?: boolean;
  /** The value is the id of a company that exists. */
  readonly references?: 'companies';
  readonly otherwise?: Remedy;
  readonly personal?: PersonalAction;
}

export interface EntityRules {
  readonly properties?: Readonly<Record<string, PropertyRule>>;
  /** The remedy for properties that are not listed. */
  readonly unknown?: 'allow' | Remedy;
  /** The events that exist, and the remedy for others. */
  readonly names?: readonly string[];
  readonly other_names?: 'report' | 'refuse';
}

export type RulesDocument = { readonly [Of in PropertyEntity]?: EntityRules };

export interface Rules {
  readonly version: number;
  readonly document: RulesDocument;
}

/** Tells whether a document has rules for values that must not be stored in clear. */
export function hasPersonalRules(document: RulesDocument): boolean {
  return personalOf(document).length > 0;
}

/** Tells whether a rule looks companies up before its record is stored, not only in `sluice rules check`. */
export function isAskedAtOnce({ references, otherwise = 'report' }: PropertyRule): boolean {
  return references !== undefined && otherwise !== 'report';
}

export function asksForCompanies(document: RulesDocument): boolean {
  return Object.values(document).some(({ properties = {} }) => Object.values(properties).some(isAskedAtOnce));
}

/** A property of which no two profiles may have one value, with what happens to the value of the later one. */
export interface UniqueProperty {
  readonly entity: Entity;
  readonly property: string;
  readonly otherwise: Exclude<Remedy, 'report'>;
}

/** Lists the properties whose values are claimed when they are stored, not only compared by `sluice rules check`. */
export function uniqueProperties(document: RulesDocument): UniqueProperty[] {
  return entities.flatMap((entity) =>
    Object.entries(document[entity]?.properties ?? {}).flatMap(([property, { unique, otherwise }]) =>
      unique === true && (otherwise === 'strip' || otherwise === 'refuse')
        ? [{ entity, property, otherwise }]
        : [],
    ),
  );
}

export interface TakenValue extends UniqueProperty {
  readonly environmentId: number;
  /** All ids of the profile. */
  readonly ids: readonly string[];
  /** JSON. */
  readonly value: string;
}

/** Lists the properties whose values are taken, each once. */
export function takenProperties(values: readonly TakenValue[]): UniqueProperty[] {
  return [...new Map(values.map((each) => [`${each.entity} ${each.property}`, each])).values()];
}

export function explainTaken({ entity, property }: UniqueProperty): string {
  return `${property} is not unique: another ${entity === 'users' ? 'user' : 'company'} has the value`;
}

/** Tells whether a document hashes or encrypts values, for which it needs keys. */
export function needsPersonalKeys(document: RulesDocument): boolean {
  return personalOf(document).some((action) => action === 'hash' || action === 'encrypt');
}

function personalOf(document: RulesDocument): PersonalAction[] {
  return Object.values(document).flatMap(({ properties = {} }) =>
    Object.values(properties).flatMap(({ personal }) => personal ?? []),
  );
}

/** A rule that a record broke and that did not refuse it. */
export interface Finding {
  readonly entity: PropertyEntity;
  /** The property; null if the name of the event broke the rule. */
  readonly property: string | null;
  readonly rule: string;
  readonly otherwise: Remedy;
}

export interface CountedFinding extends Finding {
  readonly records: number;
}

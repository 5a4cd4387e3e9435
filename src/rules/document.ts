/** The rules of an environment: what its records must hold, and what becomes of personal values. Written in one file (docs/rules.md). */
import type { PropertyEntity } from '../domain/entity.ts';

export const ruleTypes = ['text', 'number', 'integer', 'boolean', 'date', 'list', 'object'] as const;
/** A remedy says what happens to a value that breaks a rule: it is counted, left out, or its record is refused. */
export const remedies = ['report', 'strip', 'refuse'] as const;
export type Remedy = (typeof remedies)[number];
export const personalActions = ['drop', 'hash'] as const;
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
  /** No other profile has the value. Only `sluice rules check` looks. */
  readonly unique?: boolean;
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

/** Tells whether a document hashes values, for which it needs the key. */
export function hasHashes(document: RulesDocument): boolean {
  return personalOf(document).includes('hash');
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

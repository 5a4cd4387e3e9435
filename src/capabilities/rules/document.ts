/** The rules of an environment: what its records must hold, and what becomes of personal values. Written in one file (docs/rules.md). */
import type { PropertyEntity } from '../../domain/entity.ts';
import type { PersonalAction } from '../personal/personal.ts';
import type { RuleFinding, remedies } from './api.ts';

export type Remedy = (typeof remedies)[number];
export const ruleTypes = ['text', 'number', 'integer', 'boolean', 'date', 'list', 'object'] as const;

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

/** Returns what a document does with values that must not be stored in clear; none: it calls nothing personal. */
export function personalActionsOf(document: RulesDocument): PersonalAction[] {
  return Object.values(document).flatMap(({ properties = {} }) =>
    Object.values(properties).flatMap(({ personal }) => personal ?? []),
  );
}

export type CountedFinding = RuleFinding;
/** A rule that a record broke. */
export type Finding = Omit<CountedFinding, 'records'>;

/** The rules of an environment, as one file (docs/rules.md). */
import type { PropertyEntity } from '../../domain/entity.ts';
import type { PersonalAction } from '../personal/personal.ts';
import type { RuleFinding, remedies } from './api.ts';

export type Remedy = (typeof remedies)[number];
export const ruleTypes = ['text', 'number', 'integer', 'boolean', 'date', 'list', 'object'] as const;

/** Rules of a property. Keywords that JSON Schema 2020-12 has too have its meaning. */
export interface PropertyRule {
  readonly type?: (typeof ruleTypes)[number];
  readonly required?: boolean;
  readonly pattern?: string;
  readonly enum?: readonly (string | number | boolean)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** No two profiles share a value. Only `sluice rules check` checks it. */
  readonly unique?: boolean;
  readonly otherwise?: Remedy;
  readonly personal?: PersonalAction;
}

export interface EntityRules {
  readonly properties?: Readonly<Record<string, PropertyRule>>;
  /** Remedy for properties that are not listed. Default: `allow`. */
  readonly unknown?: 'allow' | Remedy;
  /** Allowed names of events. */
  readonly names?: readonly string[];
  /** Remedy for other names. Default: `refuse`. */
  readonly other_names?: 'report' | 'refuse';
}

export type RulesDocument = { readonly [Of in PropertyEntity]?: EntityRules };

/** Returns the actions on personal values. Empty if no property is personal. */
export function personalActionsOf(document: RulesDocument): PersonalAction[] {
  return Object.values(document).flatMap(({ properties = {} }) =>
    Object.values(properties).flatMap(({ personal }) => personal ?? []),
  );
}

export type CountedFinding = RuleFinding;
export type Finding = Omit<CountedFinding, 'records'>;

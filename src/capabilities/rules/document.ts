/** The rules of an environment, written in one file (docs/rules.md). */
import type { PropertyEntity } from '../../domain/entity.ts';
import type { PersonalAction } from '../personal/personal.ts';
import type { RuleFinding, remedies } from './api.ts';

export type Remedy = (typeof remedies)[number];
export const ruleTypes = ['text', 'number', 'integer', 'boolean', 'date', 'list', 'object'] as const;

/** Keywords are JSON Schema 2020-12's where it has them. */
export interface PropertyRule {
  readonly type?: (typeof ruleTypes)[number];
  readonly required?: boolean;
  readonly pattern?: string;
  readonly enum?: readonly (string | number | boolean)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** No other profile has the value. Only `sluice rules check` checks it. */
  readonly unique?: boolean;
  readonly otherwise?: Remedy;
  readonly personal?: PersonalAction;
}

export interface EntityRules {
  readonly properties?: Readonly<Record<string, PropertyRule>>;
  /** Remedy for unlisted properties. */
  readonly unknown?: 'allow' | Remedy;
  /** Known event names, and the remedy for others. */
  readonly names?: readonly string[];
  readonly other_names?: 'report' | 'refuse';
}

export type RulesDocument = { readonly [Of in PropertyEntity]?: EntityRules };

/** Returns the actions on values that must not be stored in clear, none if none is personal. */
export function personalActionsOf(document: RulesDocument): PersonalAction[] {
  return Object.values(document).flatMap(({ properties = {} }) =>
    Object.values(properties).flatMap(({ personal }) => personal ?? []),
  );
}

export type CountedFinding = RuleFinding;
export type Finding = Omit<CountedFinding, 'records'>;

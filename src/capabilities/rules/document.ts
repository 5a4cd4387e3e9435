/** The rules of an environment in the form of one file (docs/rules.md). */
import type { PropertyEntity } from '../../domain/entity.ts';
import type { PersonalAction } from '../personal/personal.ts';
import type { RuleFinding, remedies } from './api.ts';

export type Remedy = (typeof remedies)[number];
export const ruleTypes = ['text', 'number', 'integer', 'boolean', 'date', 'list', 'object'] as const;

/** A keyword of JSON Schema 2020-12 has the same meaning here. */
export interface PropertyRule {
  readonly type?: (typeof ruleTypes)[number];
  readonly required?: boolean;
  readonly pattern?: string;
  readonly enum?: readonly (string | number | boolean)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** Only `sluice rules check` checks whether values are unique. */
  readonly unique?: boolean;
  readonly otherwise?: Remedy;
  readonly personal?: PersonalAction;
}

export interface EntityRules {
  readonly properties?: Readonly<Record<string, PropertyRule>>;
  /** Treatment of a property that is not listed. Default: `allow`. */
  readonly unknown?: 'allow' | Remedy;
  readonly names?: readonly string[];
  /** Treatment of an event whose name is not in `names`. Default: `refuse`. */
  readonly other_names?: 'report' | 'refuse';
}

export type RulesDocument = { readonly [Of in PropertyEntity]?: EntityRules };

export function personalActionsOf(document: RulesDocument): PersonalAction[] {
  return Object.values(document).flatMap(({ properties = {} }) =>
    Object.values(properties).flatMap(({ personal }) => personal ?? []),
  );
}

export type CountedFinding = RuleFinding;
export type Finding = Omit<CountedFinding, 'records'>;

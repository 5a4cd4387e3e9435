import { type PropertyEntity, propertyEntities } from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import { fromByteString, toByteString } from '../../formats/json-text.ts';
import { PersonalProperties, type PersonalValues } from '../personal/personal.ts';
import type {
  CountedFinding,
  EntityRules,
  Finding,
  PropertyRule,
  Remedy,
  RulesDocument,
} from './document.ts';
import { RuledProperty } from './property.ts';

type Stages = { readonly [Of in PropertyEntity]: EntityStage | null };

/** Without `personal`, hashes are replaced with `(hash)`. */
export function compileRules(document: RulesDocument, personal?: PersonalValues): Stages {
  const stages = propertyEntities.map((entity) => {
    const rules = entity === 'events' ? withTraits(document) : document[entity];
    const stage = rules === undefined ? null : new EntityStage(entity, rules, personal);
    return [entity, stage] as const;
  });
  return Object.fromEntries(stages) as Stages;
}

/** Objects of an event in which SDKs send properties of the user. */
const userTraitPaths = ['context.traits', 'traits', 'user_properties', '$set', '$set_once', '$setOnce'];

function withTraits({ users, events }: RulesDocument): EntityRules | undefined {
  const personal = Object.entries(users?.properties ?? {}).filter(([, rule]) => rule.personal !== undefined);
  const listed = new Set(Object.keys(events?.properties ?? {}).map((name) => name.split('.', 1)[0]));
  const isAllowed = (events?.unknown ?? 'allow') === 'allow' || events?.unknown === 'report';
  // Objects that the rules list are kept, even if the rules drop unlisted properties.
  const kept = userTraitPaths.filter((name) => isAllowed || listed.has(name.split('.', 1)[0]));
  if (personal.length === 0 || kept.length === 0) return events;
  const traits = kept.flatMap((path) =>
    personal.map(([name, rule]) => [`${path}.${name}`, { personal: rule.personal }] as const),
  );
  return { ...events, properties: { ...Object.fromEntries(traits), ...events?.properties } };
}

/** Between `begin` and `end`, the stage collects the findings about one record. */
export class EntityStage {
  readonly #entity: PropertyEntity;
  readonly #properties = new Map<string, RuledProperty>();
  readonly #required: readonly RuledProperty[];
  readonly #unknown: 'allow' | Remedy;
  readonly #names: ReadonlySet<string> | null;
  readonly #otherNames: Remedy;
  readonly #personal: PersonalProperties;
  #record = 0;
  problems: Reason[] = [];
  findings: Finding[] = [];

  constructor(entity: PropertyEntity, rules: EntityRules, personal: PersonalValues | undefined) {
    const { properties = {}, unknown = 'allow', names, other_names = 'refuse' } = rules;
    this.#entity = entity;
    this.#personal = new PersonalProperties(properties, personal);
    const ruledOf = (name: string, rule: PropertyRule) =>
      new RuledProperty(name, rule, this.#personal.concerns(name));
    const ruled = Object.entries(properties).map(([name, rule]) => ruledOf(name, rule));
    for (const each of ruled) this.#properties.set(toByteString(each.name), each);
    this.#required = ruled.filter(({ rule }) => rule.required === true);
    this.#unknown = unknown;
    this.#names = names === undefined ? null : new Set(names);
    this.#otherNames = other_names;
    for (const container of this.#personal.containers) {
      const name = toByteString(container);
      if (!this.#properties.has(name)) this.#properties.set(name, ruledOf(container, {}));
    }
  }

  /** `name` is a byte string. */
  find(name: string): RuledProperty | undefined {
    return this.#properties.get(name);
  }

  /** True if an unlisted property needs no check. `name` is a byte string. */
  passes(name: string): boolean {
    if (this.#unknown !== 'allow') return false;
    return this.#personal.isNone || !name.includes('.') || !this.#personal.concerns(fromByteString(name));
  }

  begin(): void {
    if (this.problems.length > 0) this.problems = [];
    if (this.findings.length > 0) this.findings = [];
    this.#record++;
  }

  see(property: RuledProperty): true {
    property.seenIn = this.#record;
    return true;
  }

  /** Returns `undefined` if the value is omitted. `value` must not be `null`. */
  judge(property: RuledProperty | undefined, name: string, value: unknown): unknown {
    if (property === undefined) {
      if (this.#unknown !== 'allow')
        this.#break(name, 'unknown', this.#unknown, 'is not one of the properties that the rules list');
      return this.#unknown === 'strip' ? undefined : this.#personal.change(name, value);
    }
    if (value !== '') property.seenIn = this.#record;
    // The value is a hash. The rules judged the original before it was hashed.
    if (this.#personal.isChanged(name, value)) return value;
    const broken = property.judge(value);
    if (broken !== null) {
      this.#break(name, broken, property.otherwise, property.explain(broken));
      if (property.otherwise === 'strip') return undefined;
    }
    return this.#personal.change(name, property.value);
  }

  judgeAll(properties: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const kept: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(properties)) {
      const judged = value === null ? null : this.judge(this.find(toByteString(name)), name, value);
      if (judged !== undefined) kept[name] = judged;
    }
    return kept;
  }

  judgeName(name: () => string): void {
    if (this.#names === null || this.#names.has(name())) return;
    this.#break(null, 'names', this.#otherNames, 'is not one of the names that the rules list');
  }

  /**
   * `isDerived` is true if another record implies this one. A derived record may lack required
   * properties.
   */
  end(isDerived: boolean): void {
    if (isDerived) return;
    for (const property of this.#required) {
      if (property.seenIn !== this.#record)
        this.#break(property.name, 'required', property.otherwise, property.explain('required'));
    }
  }

  #break(property: string | null, rule: string, otherwise: Remedy, what: string): void {
    this.findings.push({ entity: this.#entity, property, rule, otherwise });
    if (otherwise !== 'refuse') return;
    const column = property ?? 'event_name';
    this.problems.push({ code: 'breaks_rule', message: `${column} ${what}`, column });
  }
}

export class FindingCounts {
  readonly #counts = new Map<string, CountedFinding>();

  reset(): void {
    this.#counts.clear();
  }

  add(findings: readonly Finding[]): void {
    for (const finding of findings) {
      const key = JSON.stringify([finding.entity, finding.property, finding.rule]);
      const records = (this.#counts.get(key)?.records ?? 0) + 1;
      this.#counts.set(key, { ...finding, records });
    }
  }

  get all(): CountedFinding[] {
    return [...this.#counts.values()];
  }
}

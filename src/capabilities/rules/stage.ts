import type { Reason } from '../../domain/reject.ts';
import { fromByteString, markNumber, parseJsonText } from '../../formats/json-text.ts';
import { type CellList, kind, kindOf, type RecordCells, role, textOf } from '../../load/map/cells.ts';
import { KnownName } from '../../load/map/known-names.ts';
import { UNCOUNTED } from '../../load/map/row-buffer.ts';
import type { RecordStage } from '../../load/map/rows.ts';
import type { PersonalValues } from '../personal/personal.ts';
import { compileRules, type EntityStage, FindingCounts } from './compile.ts';
import type { Finding, RulesDocument } from './document.ts';
import type { RuledProperty } from './property.ts';
import { addFindings } from './store.ts';

/**
 * If `personal` is missing, the stage shows `(hash)` in place of hashes, and adds up the findings
 * of all chunks.
 */
export function openStage(document: RulesDocument, personal?: PersonalValues) {
  const stages = compileRules(document, personal);
  const findings = new FindingCounts();
  return {
    key: document,
    /** Findings about the records that are stored as rows. */
    findings,
    reset() {
      if (personal !== undefined) findings.reset();
    },
    judgeCells(entity, cells, shape, eventName) {
      const stage = stages[entity];
      return stage === null ? null : applyRules(stage, cells, shape, eventName);
    },
    count({ found }) {
      if (found !== null) findings.add(found as readonly Finding[]);
    },
    keep: (db, loadId) => addFindings(db, loadId, findings.all),
    judgeProperties(entity, properties, { isDerived = false, eventName }) {
      const stage = stages[entity];
      if (stage === null) return { kept: properties, reasons: [], findings: [] };
      stage.begin();
      if (eventName !== undefined) stage.judgeName(() => eventName);
      const kept = stage.judgeAll(properties);
      stage.end(isDerived);
      return { kept, reasons: stage.problems, findings: stage.findings };
    },
  } satisfies RecordStage & { readonly findings: FindingCounts };
}

/**
 * This name replaces the name of a cell that is left out of a record. A CSV cell is emptied
 * instead.
 */
const ignoredName = new KnownName('', role.ignored);

function applyRules(
  stage: EntityStage,
  cells: RecordCells,
  shape: Uint8Array,
  eventName: (() => string) | null,
): Reason | null {
  if (cells.found !== null) return null;
  stage.begin();
  if (eventName !== null) stage.judgeName(() => fromByteString(eventName()));
  const { own: topLevel, metadata, page } = cells;
  if (metadata.count > 0) hideOverridden(topLevel, metadata, shape);
  cells.size += judgeList(stage, topLevel, shape) + judgeList(stage, metadata, shape);
  if (page !== null) cells.page = stage.judgeAll(withoutOverridden(page, [topLevel, metadata], shape));
  stage.end(eventName === null && (cells.flags & UNCOUNTED) !== 0);
  cells.found = stage.findings;
  return stage.problems[0] ?? null;
}

/** A property in `metadata` overrides a top-level property. */
function hideOverridden(topLevel: CellList, metadata: CellList, shape: Uint8Array): void {
  const names = new Set<string>();
  for (let cell = 0; cell < metadata.count; cell++) names.add(metadata.names[cell]?.text ?? '');
  for (let cell = 0; cell < topLevel.count; cell++) {
    const name = topLevel.names[cell] as KnownName;
    if (shape[name.role] === 1 && names.has(name.text)) leaveOut(topLevel, cell);
  }
}

function withoutOverridden(page: object, lists: readonly CellList[], shape: Uint8Array) {
  const others = Object.entries(page).filter(
    ([name]) =>
      !lists.some((list) =>
        list.names.slice(0, list.count).some(({ text, role }) => text === name && shape[role] === 1),
      ),
  );
  return Object.fromEntries(others);
}

/** Returns the number of bytes by which the cells may have grown. */
function judgeList(stage: EntityStage, list: CellList, shape: Uint8Array): number {
  let replaced: Map<number, string> | null = null;
  for (let cell = 0; cell < list.count; cell++) {
    const name = list.names[cell] as KnownName;
    if (shape[name.role] !== 1 || list.isNothing(cell)) continue;
    const property = name.foundBy(stage);
    if (property === undefined ? stage.passes(name.text) : isKept(stage, property, list, cell)) continue;
    const before = readCell(list, cell);
    const value = stage.judge(property, fromByteString(name.text), before);
    if (value === undefined) leaveOut(list, cell);
    else if (value !== before) {
      const text = textOf(value, { marked: true });
      const isSame = list.kinds[cell] === kind.text && text === before;
      list.kinds[cell] = kindOf(value, text);
      if (isSame) continue;
      replaced ??= new Map();
      replaced.set(cell, text);
    }
  }
  return replaced === null ? 0 : list.rewrite(replaced);
}

/** True if a cell breaks no rule and its text is stored unchanged. Creates no JavaScript string. */
function isKept(stage: EntityStage, property: RuledProperty, list: CellList, cell: number): boolean {
  const cellKind = list.kinds[cell] as number;
  if (cellKind !== kind.text && cellKind !== kind.number) return false;
  const start = list.starts[cell] as number;
  const end = list.ends[cell] as number;
  if (cellKind === kind.text && property.keeps(list.bytes, start, end)) return stage.see(property);
  if (!property.keepsAsNumber(list.bytes, start, end)) return false;
  list.kinds[cell] = kind.number;
  return stage.see(property);
}

function leaveOut(list: CellList, cell: number): void {
  if (list.isCsv) list.ends[cell] = list.starts[cell] ?? 0;
  else list.names[cell] = ignoredName;
}

function readCell(list: CellList, cell: number): unknown {
  const text = fromByteString(list.text(cell));
  const cellKind = list.kinds[cell] ?? 0;
  if (cellKind <= kind.escaped) return text;
  if (cellKind === kind.number) return markNumber(text);
  if (cellKind === kind.boolean) return text === 'true';
  const parsed = parseJsonText(text);
  return 'code' in parsed ? text : parsed.value;
}

import type { RecordStage } from '../../load/map/seam.ts';
import type { PersonalValues } from '../personal/personal.ts';
import { applyRules } from './cells.ts';
import { compileRules, FindingCounts } from './compile.ts';
import type { Finding, RulesDocument } from './document.ts';
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

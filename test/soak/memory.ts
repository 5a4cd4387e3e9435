import { readFileSync } from 'node:fs';
import type { Member, Role } from './site/member.ts';

interface Sample {
  readonly minutes: number;
  readonly mib: number;
}

/** Of one process, from its start to its end. */
interface Life {
  readonly role: Role;
  /** Nobody kills it: it lives long enough to be judged. */
  readonly isSpared: boolean;
  readonly samples: Sample[];
}

export interface Slope {
  readonly role: Role;
  /** Of what the spared processes go back to, over the last two thirds of the run; null: nothing to tell it from. */
  readonly mibPerMinute: number | null;
  readonly peakMib: number;
}

/** A process fills its heap and its caches first; what it does in its first minutes is no slope. */
const warmUpMinutes = 1;
/**
 * Memory goes up with each file and down when the collector has run, by 80 MiB and more; what is never given back shows in how
 * far down it goes within this time.
 */
const floorMinutes = 2;
/** For an hour of soak that is what one process may grow by. */
const mostMibPerMinute = 1;
/** Shorter runs say nothing about leaks. */
const judgedMinutes = 30;

/** Resident memory of the processes, looked at now and then. Linux only; elsewhere nothing is known. */
export class Memory {
  readonly #lives = new Map<number, Life>();
  readonly #startedAt = performance.now();

  sample(members: readonly Member[]): void {
    for (const { pid, role, mortal } of members) {
      const mib = pid === null ? null : residentMib(pid);
      if (pid === null || mib === null) continue;
      const life = this.#lives.get(pid) ?? { role, isSpared: !mortal, samples: [] };
      this.#lives.set(pid, life);
      life.samples.push({ minutes: this.#minutes, mib });
    }
  }

  slopes(): readonly Slope[] {
    return (['serve', 'work'] as const).map((role) => {
      const lives = [...this.#lives.values()].filter((life) => life.role === role);
      const peakMib = Math.round(
        Math.max(0, ...lives.flatMap(({ samples }) => samples.map(({ mib }) => mib))),
      );
      const spared = lives.filter(({ isSpared }) => isSpared);
      return { role, mibPerMinute: commonSlope(spared.map((life) => floorsOf(this.#judged(life)))), peakMib };
    });
  }

  /** Sentences; none for a run that is too short to be judged. */
  problems(): readonly string[] {
    if (this.#minutes < judgedMinutes) return [];
    return this.slopes().flatMap(({ role, mibPerMinute }) =>
      mibPerMinute !== null && mibPerMinute > mostMibPerMinute
        ? [`memory of \`sluice ${role}\` grows by ${mibPerMinute.toFixed(2)} MiB a minute`]
        : [],
    );
  }

  get #minutes(): number {
    return (performance.now() - this.#startedAt) / 60_000;
  }

  #judged({ samples }: Life): readonly Sample[] {
    const from = Math.max(this.#minutes / 3, (samples[0]?.minutes ?? 0) + warmUpMinutes);
    return samples.filter(({ minutes }) => minutes >= from);
  }
}

/** The least of each `floorMinutes`. */
function floorsOf(samples: readonly Sample[]): readonly Sample[] {
  const floors = new Map<number, Sample>();
  for (const sample of samples) {
    const window = Math.floor(sample.minutes / floorMinutes);
    const floor = floors.get(window);
    if (floor === undefined || sample.mib < floor.mib) floors.set(window, sample);
  }
  return [...floors.values()];
}

/** Least squares, with one slope for all and a level for each. */
function commonSlope(lives: readonly (readonly Sample[])[]): number | null {
  let [covariance, variance] = [0, 0];
  for (const samples of lives) {
    const meanMinutes = mean(samples.map(({ minutes }) => minutes));
    const meanMib = mean(samples.map(({ mib }) => mib));
    for (const { minutes, mib } of samples) {
      covariance += (minutes - meanMinutes) * (mib - meanMib);
      variance += (minutes - meanMinutes) ** 2;
    }
  }
  return variance === 0 ? null : covariance / variance;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function residentMib(pid: number): number | null {
  try {
    const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? null : Number(kib) / 1_024;
  } catch {
    return null;
  }
}

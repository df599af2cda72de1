/** Something that a kind measures. */
export interface Metric {
  /**
   * - `counter`: a sample is added.
   * - `gauge`: a sample replaces the one before.
   * - `histogram`: a sample is sorted into the buckets.
   */
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** By the rules of Prometheus, e.g. `reconstruct_jobs_deleted_total`; unique in the process. */
  readonly name: string;
  /** A sentence without a full stop; stands in docs/reference/metrics.md. */
  readonly help: string;
  /** Never one that holds the name of an object, of which there may be any number. @default - none */
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram's buckets, ascending. @default - 5 ms to 60 s */
  readonly buckets?: readonly number[];
}

/** One value of a metric. */
export interface Sample {
  /** The name of one of the controller's metrics; one that it doesn't declare is logged as a bug. */
  readonly metric: string;
  /** A value for each of the metric's labels. @default - none */
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Made by `npm run generate` from src/model/wire/api_answers.ts. Do not edit. */
export const ANSWER_SCHEMAS = {
  properties: {
    services: {
      $ref: "#/components/schemas/ServicesJson",
    },
    service: {
      $ref: "#/components/schemas/ServiceJson",
    },
    series: {
      $ref: "#/components/schemas/SeriesAnswer",
    },
    heatMap: {
      $ref: "#/components/schemas/HeatMapAnswer",
    },
    profile: {
      $ref: "#/components/schemas/ProfileAnswer",
    },
    diff: {
      $ref: "#/components/schemas/FleetDiffJson",
    },
    growing: {
      $ref: "#/components/schemas/GrowingJson",
    },
    endpoints: {
      $ref: "#/components/schemas/EndpointsJson",
    },
    verdicts: {
      $ref: "#/components/schemas/FleetVerdictsJson",
    },
    diagnoses: {
      $ref: "#/components/schemas/FleetDiagnosesJson",
    },
    sizes: {
      $ref: "#/components/schemas/FleetSizesJson",
    },
    alerts: {
      $ref: "#/components/schemas/AlertsJson",
    },
    alert: {
      $ref: "#/components/schemas/AlertJson",
    },
    actions: {
      $ref: "#/components/schemas/ActionsJson",
    },
    ingest: {
      $ref: "#/components/schemas/IngestJson",
    },
    artifacts: {
      $ref: "#/components/schemas/ArtifactsJson",
    },
    artifact: {
      $ref: "#/components/schemas/ArtifactAnswer",
    },
    lease: {
      $ref: "#/components/schemas/LeaseAnswer",
    },
    eviction: {
      $ref: "#/components/schemas/EvictionAnswer",
    },
    requests: {
      $ref: "#/components/schemas/RequestsJson",
    },
    request: {
      $ref: "#/components/schemas/RequestJson",
    },
    collector: {
      $ref: "#/components/schemas/CollectorAnswer",
    },
    instance: {
      $ref: "#/components/schemas/InstanceAnswer",
    },
    frames: {
      $ref: "#/components/schemas/FramesAnswer",
    },
    health: {
      $ref: "#/components/schemas/HealthAnswer",
    },
    error: {
      $ref: "#/components/schemas/ErrorAnswer",
    },
  },
  definitions: {
    ServicesJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.services/1",
        },
        window: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
        },
        services: {
          type: "array",
          items: {
            $ref: "#/components/schemas/ServiceRowJson",
          },
          description: "By name.",
        },
      },
      required: ["schema", "window", "services"],
      description: "`tidemark.services/1`",
    },
    TimeMs: {
      type: "number",
      description: "Milliseconds since 1970 (UTC).",
    },
    ServiceRowJson: {
      type: "object",
      properties: {
        service: {
          type: "string",
        },
        state: {
          type: "string",
          enum: ["running", "silent", "ended"],
          description:
            '"running" if an instance runs, otherwise "silent" if the end of one is not known.',
        },
        versions: {
          type: "array",
          items: {
            type: "string",
          },
          description: "Of the instances that run, or of the last ones if none runs.",
        },
        instances: {
          type: "number",
          description: "Recorded programs that run, each with its child processes.",
        },
        endedInstances: {
          type: "number",
          description: "Recorded programs that ended within the window.",
        },
        silentInstances: {
          type: "number",
          description:
            "Recorded programs that reported within the window and are silent at its end.",
        },
        rssBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "Sum of RSS; shared memory counts more than once.",
        },
        growthBytesPerHour: {
          type: "number",
          description:
            "Sum over the instances that run; absent if none does, or no verdict measured it.",
        },
        limitBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "Sum of the limits of the control groups; 0: an instance has none.",
        },
        highBytes: {
          $ref: "#/components/schemas/Bytes",
          description:
            "Sum of `memory.high` of the control groups, above which they are throttled; absent: an instance has none.",
        },
        msToLimit: {
          $ref: "#/components/schemas/Millis",
          description: "Of the instance that reaches its limit first; 0: no limit, or no growth.",
        },
        verdict: {
          $ref: "#/components/schemas/FleetVerdictJson",
        },
        sparkline: {
          type: "array",
          items: {
            anyOf: [
              {
                $ref: "#/components/schemas/Bytes",
              },
              {
                type: "null",
              },
            ],
          },
          description:
            "RSS over the window in equal steps, the newest last; null: no instance reported.",
        },
        lastSeenMs: {
          $ref: "#/components/schemas/TimeMs",
          description: "When an instance last reported.",
        },
      },
      required: [
        "service",
        "state",
        "versions",
        "instances",
        "endedInstances",
        "silentInstances",
        "rssBytes",
        "limitBytes",
        "msToLimit",
        "verdict",
        "sparkline",
        "lastSeenMs",
      ],
      description:
        "One row of `tidemark.services/1`. Figures of memory are sums over the instances that run.",
    },
    Bytes: {
      type: "number",
      description: "Bytes; an estimate may be fractional.",
    },
    Millis: {
      type: "number",
      description: "Milliseconds of a duration.",
    },
    FleetVerdictJson: {
      type: "object",
      properties: {
        kind: {
          type: "string",
          description: 'As in `tidemark.diagnosis/1`; "none" if there is no verdict yet.',
        },
        confidence: {
          type: "number",
          description: "Of the kind, 0 to 1.",
        },
        summary: {
          type: "string",
          description: "One sentence.",
        },
        instances: {
          type: "number",
          description: "Instances with a verdict of this kind.",
        },
        stream: {
          type: "string",
          description: "The instance whose verdict it is; absent if none has one.",
        },
      },
      required: ["kind", "confidence", "summary", "instances"],
      description: "The verdict of a service: that of the instance that grows most.",
    },
    ServiceJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.service/1",
        },
        service: {
          type: "string",
        },
        window: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
        },
        summary: {
          $ref: "#/components/schemas/ServiceRowJson",
        },
        instances: {
          type: "array",
          items: {
            $ref: "#/components/schemas/InstanceRowJson",
          },
          description: "Those that run first, then by RSS.",
        },
        events: {
          type: "array",
          items: {
            type: "object",
            properties: {
              timeMs: {
                $ref: "#/components/schemas/TimeMs",
              },
              stream: {
                type: "string",
              },
              pid: {
                $ref: "#/components/schemas/Pid",
              },
              kind: {
                type: "string",
              },
              detail: {
                type: "string",
              },
            },
            required: ["timeMs", "stream", "pid", "kind", "detail"],
          },
          description: "The newest first, at most 200.",
        },
        limits: {
          type: "array",
          items: {
            type: "string",
          },
          description: "What could not be seen, and why.",
        },
      },
      required: ["schema", "service", "window", "summary", "instances", "events", "limits"],
      description: "`tidemark.service/1`",
    },
    InstanceRowJson: {
      type: "object",
      properties: {
        stream: {
          type: "string",
          description: "Name of its stream; the address of its page ends in it.",
        },
        state: {
          $ref: "#/components/schemas/InstanceState",
        },
        version: {
          type: "string",
        },
        env: {
          type: "string",
        },
        host: {
          type: "string",
        },
        pod: {
          type: "string",
        },
        container: {
          type: "string",
        },
        pid: {
          $ref: "#/components/schemas/Pid",
        },
        command: {
          type: "string",
        },
        python: {
          type: "string",
        },
        startedMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        endedMs: {
          $ref: "#/components/schemas/TimeMs",
          description:
            "Absent if its end is not known; after the window if it ran at the window's end.",
        },
        lastSeenMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        rssBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "Of the program and its child processes, at the last reading.",
        },
        peakRssBytes: {
          $ref: "#/components/schemas/Bytes",
        },
        processes: {
          type: "number",
          description:
            "The program and its child processes that run; of a program that has ended, all that it had.",
        },
        growthBytesPerHour: {
          type: "number",
          description: "By its verdict, while it ran; absent if that did not measure it.",
        },
        limitBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "0: none.",
        },
        continuedAs: {
          type: "string",
          description:
            "Stream of the next recording of the same process, which got the agent or lost it then; absent: this is the last one.",
        },
        highBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "`memory.high` of its control group; absent: none.",
        },
        msToLimit: {
          $ref: "#/components/schemas/Millis",
          description:
            "Until this instance reaches its limit; 0: no limit, no growth, or it does not run.",
        },
        verdict: {
          type: "object",
          properties: {
            kind: {
              type: "string",
            },
            confidence: {
              type: "number",
            },
            summary: {
              type: "string",
            },
          },
          required: ["kind", "confidence", "summary"],
        },
        labels: {
          type: "object",
          additionalProperties: {
            type: "string",
          },
        },
        source: {
          type: "string",
          description:
            'Another profiler that sent its profiles ("pyroscope", "otlp", "datadog"), or the tool of an imported file without RSS ("tracemalloc"). RSS is unknown then.',
        },
        liveBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "With  {@link  source } : of its last profile; absent if it has none.",
        },
      },
      required: [
        "stream",
        "state",
        "version",
        "env",
        "host",
        "pod",
        "container",
        "pid",
        "command",
        "python",
        "startedMs",
        "lastSeenMs",
        "rssBytes",
        "peakRssBytes",
        "processes",
        "limitBytes",
        "msToLimit",
        "verdict",
        "labels",
      ],
      description: "One recorded program of a service.",
    },
    InstanceState: {
      type: "string",
      enum: ["running", "silent", "ended", "continued"],
      description:
        "At the end of the window. running: it reports. silent: it has not reported for 5 minutes, and its end is not known: its recorder or its host may be gone. ended: its end is known. continued: a later recording of the same process follows.",
    },
    Pid: {
      type: "number",
      description: "Process id in the recorder's pid namespace.",
    },
    SeriesAnswer: {
      type: "object",
      properties: {
        service: {
          type: "string",
        },
        name: {
          $ref: "#/components/schemas/SeriesName",
        },
        startMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        stepMs: {
          $ref: "#/components/schemas/Millis",
        },
        groups: {
          type: "array",
          items: {
            type: "object",
            properties: {
              group: {
                type: "string",
              },
              values: {
                type: "array",
                items: {
                  type: ["number", "null"],
                },
                description: "By step, in the unit of the name; null: no instance reported.",
              },
            },
            required: ["group", "values"],
          },
        },
      },
      required: ["service", "name", "startMs", "stepMs", "groups"],
      description:
        "Answer of `GET /api/v1/series`: the sum over instances of the mean over each step, weighted by time.",
    },
    SeriesName: {
      type: "string",
      enum: [
        "rssBytes",
        "pssBytes",
        "liveBytes",
        "ledger",
        "pages",
        "deviceBytes",
        "requestsPerSecond",
        "cgroupUsageBytes",
        "cgroupLimitBytes",
        "cgroupHighBytes",
      ],
    },
    HeatMapAnswer: {
      type: "object",
      properties: {
        service: {
          type: "string",
        },
        name: {
          $ref: "#/components/schemas/HeatMapName",
        },
        startMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        stepMs: {
          $ref: "#/components/schemas/Millis",
        },
        instances: {
          type: "array",
          items: {
            $ref: "#/components/schemas/HeatMapRow",
          },
        },
        otherInstances: {
          type: "number",
          description: "Instances that were left out; they have smaller peaks.",
        },
      },
      required: ["service", "name", "startMs", "stepMs", "instances", "otherInstances"],
      description:
        "Answer of `GET /api/v1/heatmap`: a row for each instance, the largest peak first.",
    },
    HeatMapName: {
      type: "string",
      enum: ["rssBytes", "liveBytes"],
    },
    HeatMapRow: {
      type: "object",
      properties: {
        stream: {
          type: "string",
          description: "The name of its stream.",
        },
        version: {
          type: "string",
        },
        host: {
          type: "string",
        },
        pod: {
          type: "string",
        },
        startedMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        endedMs: {
          $ref: "#/components/schemas/TimeMs",
          description: "Absent: it runs, or its end was not seen.",
        },
        limitBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "0: it has none, or it is unknown.",
        },
        values: {
          type: "array",
          items: {
            anyOf: [
              {
                $ref: "#/components/schemas/Bytes",
              },
              {
                type: "null",
              },
            ],
          },
          description:
            "By step, the mean over the time in which it reported; null: it did not report.",
        },
        odd: {
          $ref: "#/components/schemas/OddMemory",
          description: "Set if its memory is unlike that of the other instances of its version.",
        },
      },
      required: ["stream", "version", "host", "pod", "startedMs", "limitBytes", "values"],
    },
    OddMemory: {
      type: "object",
      properties: {
        differenceBytes: {
          $ref: "#/components/schemas/Bytes",
        },
        siblings: {
          type: "number",
          description: "Other instances of its version that reported at the same time.",
        },
      },
      required: ["differenceBytes", "siblings"],
      description:
        "How far an instance is from the median of its siblings, over the window or over its last quarter, whichever is more.",
    },
    ProfileAnswer: {
      type: "object",
      properties: {
        service: {
          type: "string",
        },
        startMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        endMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        coverage: {
          $ref: "#/components/schemas/CoverageJson",
        },
        liveBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "Of all stacks, including those that are left out.",
        },
        allocatedBytes: {
          $ref: "#/components/schemas/Bytes",
        },
        stacks: {
          type: "array",
          items: {
            type: "object",
            properties: {
              stack: {
                type: "array",
                items: {
                  $ref: "#/components/schemas/StackFrameJson",
                },
              },
              domain: {
                type: "string",
                enum: ["python", "native", "mapped"],
              },
              liveBytes: {
                $ref: "#/components/schemas/Bytes",
              },
              liveObjects: {
                type: "number",
              },
              allocatedBytes: {
                $ref: "#/components/schemas/Bytes",
              },
            },
            required: ["stack", "domain", "liveBytes", "liveObjects", "allocatedBytes"],
          },
          description: "Leaf first, most live bytes first.",
        },
        other: {
          type: "object",
          properties: {
            stacks: {
              type: "number",
            },
            liveBytes: {
              $ref: "#/components/schemas/Bytes",
            },
            allocatedBytes: {
              $ref: "#/components/schemas/Bytes",
            },
          },
          required: ["stacks", "liveBytes", "allocatedBytes"],
          description: "What was left out, exactly.",
        },
        limits: {
          type: "array",
          items: {
            type: "string",
          },
          description: "What could not be seen, and why.",
        },
      },
      required: [
        "service",
        "startMs",
        "endMs",
        "coverage",
        "liveBytes",
        "allocatedBytes",
        "stacks",
        "other",
        "limits",
      ],
      description:
        "Answer of `GET /api/v1/profile?format=json`: the functions of a window's flame graph.",
    },
    CoverageJson: {
      type: "object",
      properties: {
        instances: {
          type: "number",
          description:
            "Mean over the window of the number of instances with a profile; figures are sums over them.",
        },
        running: {
          type: "number",
          description: "The same of the instances that ran, with a profile or without.",
        },
        factor: {
          type: "number",
          description: "Figures multiplied by it estimate those of all; 1: they are those of all.",
        },
      },
      required: ["instances", "running", "factor"],
      description: "How much of the selected instances their profiles cover.",
    },
    StackFrameJson: {
      type: "object",
      properties: {
        function: {
          type: "string",
        },
        file: {
          type: "string",
        },
        line: {
          type: "number",
        },
        kind: {
          type: "string",
          enum: ["python", "native", "mark"],
        },
      },
      required: ["function", "file", "line", "kind"],
      description: "A frame of a stack.",
    },
    FleetDiffJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.fleet_diff/1",
        },
        figure: {
          type: "string",
          enum: ["liveBytes", "liveObjects", "allocatedBytes", "allocatedObjects"],
        },
        per: {
          type: "string",
          enum: ["none", "instance"],
          description: "What both sides are divided by.",
        },
        left: {
          $ref: "#/components/schemas/DiffSideJson",
        },
        right: {
          $ref: "#/components/schemas/DiffSideJson",
        },
        stacks: {
          type: "array",
          items: {
            type: "object",
            properties: {
              stack: {
                type: "array",
                items: {
                  $ref: "#/components/schemas/StackFrameJson",
                },
                description: "Leaf first.",
              },
              left: {
                type: "number",
              },
              right: {
                type: "number",
              },
              change: {
                type: "number",
              },
            },
            required: ["stack", "left", "right", "change"],
          },
          description: "The largest change first. `change`: right less left.",
        },
        other: {
          type: "object",
          properties: {
            stacks: {
              type: "number",
            },
            left: {
              type: "number",
            },
            right: {
              type: "number",
            },
            change: {
              type: "number",
            },
          },
          required: ["stacks", "left", "right", "change"],
          description: "What was left out, exactly.",
        },
        limits: {
          type: "array",
          items: {
            type: "string",
          },
          description: "What could not be seen, and why.",
        },
      },
      required: ["schema", "figure", "per", "left", "right", "stacks", "other", "limits"],
      description: "`tidemark.fleet_diff/1`: what differs between two selections of profiles.",
    },
    DiffSideJson: {
      type: "object",
      properties: {
        selector: {
          type: "string",
          description: "The processes, as labels select them.",
        },
        startMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        endMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        instances: {
          type: "number",
          description:
            "Mean number of instances with a profile, from the first to the last moment of the window at which one had one.",
        },
        isUnknown: {
          type: "boolean",
          const: true,
          description:
            "Set if the selection matches no stored process, in this window or any other.",
        },
        unknown: {
          type: "string",
          description:
            "With  {@link  isUnknown } : which name is not stored, and similar ones; one line.",
        },
        total: {
          type: "number",
          description:
            'Of all stacks, in bytes or objects; divided by  {@link  instances }  with `per` "instance".',
        },
      },
      required: ["selector", "startMs", "endMs", "instances", "total"],
      description: "One side of `tidemark.fleet_diff/1`.",
    },
    GrowingJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.growing/1",
        },
        service: {
          type: "string",
        },
        window: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
        },
        early: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
          description:
            "The two parts of the window that are compared: its first and its last quarter.",
        },
        late: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
        },
        coverage: {
          $ref: "#/components/schemas/CoverageJson",
          description: "Of the late part.",
        },
        earlyBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "Means over the parts, of all stacks.",
        },
        lateBytes: {
          $ref: "#/components/schemas/Bytes",
        },
        growthBytesPerHour: {
          type: "number",
        },
        stacks: {
          type: "array",
          items: {
            type: "object",
            properties: {
              stack: {
                type: "array",
                items: {
                  $ref: "#/components/schemas/StackFrameJson",
                },
                description: "Leaf first.",
              },
              earlyBytes: {
                $ref: "#/components/schemas/Bytes",
              },
              lateBytes: {
                $ref: "#/components/schemas/Bytes",
              },
              growthBytesPerHour: {
                type: "number",
              },
              survivedBytes: {
                $ref: "#/components/schemas/Bytes",
                description:
                  "Allocated within the window, live in the last profiles of it, and older than a tenth of the window. Left out where ages are unknown.",
              },
            },
            required: ["stack", "earlyBytes", "lateBytes", "growthBytesPerHour"],
          },
          description: "The fastest growing first; stacks that shrink are at the end.",
        },
        other: {
          type: "object",
          properties: {
            stacks: {
              type: "number",
            },
            earlyBytes: {
              $ref: "#/components/schemas/Bytes",
            },
            lateBytes: {
              $ref: "#/components/schemas/Bytes",
            },
            growthBytesPerHour: {
              type: "number",
            },
          },
          required: ["stacks", "earlyBytes", "lateBytes", "growthBytesPerHour"],
          description: "What was left out, exactly.",
        },
        limits: {
          type: "array",
          items: {
            type: "string",
          },
        },
      },
      required: [
        "schema",
        "service",
        "window",
        "early",
        "late",
        "coverage",
        "earlyBytes",
        "lateBytes",
        "growthBytesPerHour",
        "stacks",
        "other",
        "limits",
      ],
      description: "`tidemark.growing/1`: what grew in a window.",
    },
    EndpointsJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.endpoints/1",
        },
        service: {
          type: "string",
        },
        window: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
        },
        instances: {
          type: "number",
          description:
            "Mean over the window of the number of instances with a profile; figures are sums over them.",
        },
        coverage: {
          $ref: "#/components/schemas/CoverageJson",
        },
        endpoints: {
          type: "array",
          items: {
            type: "object",
            properties: {
              endpoint: {
                type: "string",
                description: "The name for queries: function and file, or the value of a label.",
              },
              function: {
                type: "string",
                description: "Or the value of a label.",
              },
              file: {
                type: "string",
                description: '"" for a label.',
              },
              framework: {
                type: "string",
                description:
                  "Whose dispatcher called it; `tidemark.label`: the program set the label.",
              },
              liveBytes: {
                $ref: "#/components/schemas/Bytes",
                description: "The mean over the window.",
              },
              liveObjects: {
                type: "number",
              },
              allocatedBytes: {
                $ref: "#/components/schemas/Bytes",
                description: "In the window.",
              },
              stacks: {
                type: "number",
              },
            },
            required: [
              "endpoint",
              "function",
              "file",
              "framework",
              "liveBytes",
              "liveObjects",
              "allocatedBytes",
              "stacks",
            ],
          },
        },
        other: {
          type: "object",
          properties: {
            endpoints: {
              type: "number",
            },
            liveBytes: {
              $ref: "#/components/schemas/Bytes",
            },
            liveObjects: {
              type: "number",
            },
            allocatedBytes: {
              $ref: "#/components/schemas/Bytes",
            },
            stacks: {
              type: "number",
            },
          },
          required: ["endpoints", "liveBytes", "liveObjects", "allocatedBytes", "stacks"],
          description: "Endpoints that were left out.",
        },
        outside: {
          type: "object",
          properties: {
            liveBytes: {
              $ref: "#/components/schemas/Bytes",
            },
            liveObjects: {
              type: "number",
            },
            allocatedBytes: {
              $ref: "#/components/schemas/Bytes",
            },
            stacks: {
              type: "number",
            },
          },
          required: ["liveBytes", "liveObjects", "allocatedBytes", "stacks"],
          description:
            "What was allocated outside of endpoints: imports, start-up, background threads.",
        },
        limits: {
          type: "array",
          items: {
            type: "string",
          },
        },
      },
      required: [
        "schema",
        "service",
        "window",
        "instances",
        "coverage",
        "endpoints",
        "other",
        "outside",
        "limits",
      ],
      description:
        "`tidemark.endpoints/1`: the memory of a service by endpoint, the most live bytes first.",
    },
    FleetVerdictsJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.fleet_verdicts/1",
        },
        window: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
        },
        verdicts: {
          type: "array",
          items: {
            type: "object",
            properties: {
              service: {
                type: "string",
              },
              version: {
                type: "string",
              },
              stream: {
                type: "string",
              },
              host: {
                type: "string",
              },
              pod: {
                type: "string",
              },
              pid: {
                $ref: "#/components/schemas/Pid",
              },
              isRunning: {
                type: "boolean",
              },
              state: {
                $ref: "#/components/schemas/InstanceState",
              },
              lastSeenMs: {
                $ref: "#/components/schemas/TimeMs",
                description: "When it last reported.",
              },
              endedMs: {
                $ref: "#/components/schemas/TimeMs",
                description: "Absent if its end is not known.",
              },
              continuedAs: {
                type: "string",
                description: "Stream of the next recording of the same process.",
              },
              kind: {
                type: "string",
              },
              confidence: {
                type: "number",
                description: "0 to 1.",
              },
              summary: {
                type: "string",
                description: "One sentence.",
              },
              growthBytesPerHour: {
                type: "number",
                description:
                  "Of this instance, while it ran. Left out where growth was not measured.",
              },
              msToLimit: {
                $ref: "#/components/schemas/Millis",
                description:
                  "Until this instance reaches its limit; 0: no limit, no growth, or it does not run.",
              },
            },
            required: [
              "service",
              "version",
              "stream",
              "host",
              "pod",
              "pid",
              "isRunning",
              "state",
              "lastSeenMs",
              "kind",
              "confidence",
              "summary",
              "msToLimit",
            ],
          },
          description: "Those that run first, then the fastest growing.",
        },
      },
      required: ["schema", "window", "verdicts"],
      description: "`tidemark.fleet_verdicts/1`: the verdicts of instances.",
    },
    FleetDiagnosesJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.fleetDiagnoses/1",
        },
        window: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
        },
        diagnoses: {
          type: "array",
          items: {
            $ref: "#/components/schemas/FleetDiagnosisJson",
          },
          description: "Services that leak first, the one that reaches its limit first on top.",
        },
      },
      required: ["schema", "window", "diagnoses"],
      description:
        "`tidemark.fleetDiagnoses/1`: the diagnoses of all services that ran in a window.",
    },
    FleetDiagnosisJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.fleetDiagnosis/1",
        },
        service: {
          type: "string",
        },
        window: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
        },
        verdict: {
          type: "object",
          properties: {
            kind: {
              $ref: "#/components/schemas/VerdictKind",
            },
            confidence: {
              type: "number",
              description: "0 to 1.",
            },
            summary: {
              type: "string",
              description: "One sentence.",
            },
          },
          required: ["kind", "confidence", "summary"],
        },
        leak: {
          $ref: "#/components/schemas/FleetLeakJson",
          description: "Set if the service leaks.",
        },
        versions: {
          type: "array",
          items: {
            $ref: "#/components/schemas/FleetVersionJson",
          },
          description: "The newest last.",
        },
        change: {
          type: "object",
          properties: {
            version: {
              type: "string",
            },
            against: {
              type: "string",
            },
            kind: {
              type: "string",
              enum: ["growth", "level"],
              description:
                '"growth": a regression. "level": the version needs more or less memory, and does not grow faster.',
            },
            growth: {
              $ref: "#/components/schemas/FleetRateJson",
            },
            levelBytes: {
              $ref: "#/components/schemas/Bytes",
              description:
                "Level of the new minus that of the old version at the same age; if that is not known, 0 within a wide interval.",
            },
            low: {
              $ref: "#/components/schemas/Bytes",
            },
            high: {
              $ref: "#/components/schemas/Bytes",
            },
          },
          required: ["version", "against", "kind", "growth", "levelBytes", "low", "high"],
          description:
            "Set if growth or the level changed with the newest version or the first that grows.",
        },
        needed: {
          $ref: "#/components/schemas/FleetNeededJson",
          description:
            "Set if nothing leaks, and the newest version is too young for that to be sure.",
        },
        own: {
          $ref: "#/components/schemas/FleetOwnVerdictJson",
          description:
            "Set if the verdict is `insufficient-evidence` and single processes have one.",
        },
        oddInstances: {
          type: "array",
          items: {
            type: "object",
            properties: {
              instance: {
                type: "string",
              },
              version: {
                type: "string",
              },
              growthBytesPerHour: {
                type: "number",
              },
              low: {
                type: "number",
              },
              high: {
                type: "number",
              },
            },
            required: ["growthBytesPerHour", "high", "instance", "low", "version"],
          },
          description: "Instances that differ from their siblings.",
        },
        suspects: {
          type: "array",
          items: {
            $ref: "#/components/schemas/FleetSuspectJson",
          },
        },
        forecast: {
          type: "array",
          items: {
            $ref: "#/components/schemas/FleetForecastJson",
          },
          description: "Of running instances that grow, the first to reach its limit first.",
        },
        kills: {
          $ref: "#/components/schemas/FleetKillsJson",
          description: "Set by the server if something was killed.",
        },
        evidence: {
          type: "array",
          items: {
            type: "object",
            properties: {
              rule: {
                type: "string",
              },
              says: {
                type: "string",
                enum: ["leak", "no leak"],
              },
              detail: {
                type: "string",
              },
            },
            required: ["rule", "says", "detail"],
          },
        },
        limits: {
          type: "array",
          items: {
            type: "string",
          },
          description: "What could not be seen, and why.",
        },
      },
      required: [
        "schema",
        "service",
        "window",
        "verdict",
        "versions",
        "oddInstances",
        "suspects",
        "forecast",
        "evidence",
        "limits",
      ],
      description: "`tidemark.fleetDiagnosis/1`: what one service's processes show together.",
    },
    VerdictKind: {
      type: "string",
      enum: [
        "steady",
        "warm-up",
        "cache-plateau",
        "python-leak",
        "cycle-garbage",
        "native-leak",
        "graph-retention",
        "allocator-retention",
        "file-growth",
        "shm-growth",
        "child-growth",
        "copy-on-write",
        "gpu-leak",
        "gpu-fragmentation",
        "gpu-contention",
        "gpu-capacity",
        "handle-leak",
        "out-of-memory",
        "insufficient-evidence",
      ],
    },
    FleetLeakJson: {
      type: "object",
      properties: {
        growthBytesPerHour: {
          type: "number",
        },
        low: {
          type: "number",
        },
        high: {
          type: "number",
        },
        version: {
          type: "string",
          description: 'The version that runs; "": unknown.',
        },
        since: {
          type: "string",
          description: "The first version that leaks.",
        },
        affectedInstances: {
          type: "number",
          description: "Running instances of `version` that leak, and all that run.",
        },
        runningInstances: {
          type: "number",
        },
        bytesPerRequest: {
          $ref: "#/components/schemas/Bytes",
          description: "Set if the growth follows the number of requests more closely than time.",
        },
      },
      required: [
        "affectedInstances",
        "growthBytesPerHour",
        "high",
        "low",
        "runningInstances",
        "since",
        "version",
      ],
      description: "Of the version that leaks: each instance grows at this rate.",
    },
    FleetVersionJson: {
      type: "object",
      properties: {
        growthBytesPerHour: {
          type: "number",
        },
        low: {
          type: "number",
        },
        high: {
          type: "number",
        },
        version: {
          type: "string",
        },
        instances: {
          type: "number",
          description: "Processes whose readings were used.",
        },
        shape: {
          $ref: "#/components/schemas/FleetShape",
        },
        windowMs: {
          $ref: "#/components/schemas/Millis",
          description:
            "The window that decided: 1 h, 6 h, 1 d or 7 d, or less if the version is younger.",
        },
        levelBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "Median RSS at the end.",
        },
      },
      required: [
        "growthBytesPerHour",
        "high",
        "instances",
        "levelBytes",
        "low",
        "shape",
        "version",
        "windowMs",
      ],
    },
    FleetShape: {
      type: "string",
      enum: ["leaking", "undecided", "filling", "stepped", "flat", "short"],
      description: "What a window of a version's processes shows.",
    },
    FleetRateJson: {
      type: "object",
      properties: {
        growthBytesPerHour: {
          type: "number",
        },
        low: {
          type: "number",
        },
        high: {
          type: "number",
        },
      },
      required: ["growthBytesPerHour", "low", "high"],
      description:
        "A growth rate with its interval, corrected for the number of services that are judged together.",
    },
    FleetNeededJson: {
      type: "object",
      properties: {
        version: {
          type: "string",
        },
        share: {
          type: "number",
          description:
            "A leak of this share of the limit, or of the level if no limit is known, a day would be seen.",
        },
        isOfLimit: {
          type: "boolean",
        },
        instances: {
          type: "number",
          description: "So many instances, for so long.",
        },
        ms: {
          $ref: "#/components/schemas/Millis",
        },
        running: {
          type: "number",
          description: "Those that run so far, and for how long.",
        },
        ranMs: {
          $ref: "#/components/schemas/Millis",
        },
      },
      required: ["version", "share", "isOfLimit", "instances", "ms", "running", "ranMs"],
      description:
        "How many instances of a young version, running for how long, are enough for a decision about it.",
    },
    FleetOwnVerdictJson: {
      type: "object",
      properties: {
        kind: {
          $ref: "#/components/schemas/VerdictKind",
          description: "The most frequent kind that calls for action.",
        },
        instances: {
          type: "number",
          description: "Running instances with this verdict.",
        },
        running: {
          type: "number",
          description: "All running instances.",
        },
        growthBytesPerHour: {
          type: "number",
          description: "Sum over the instances with this verdict whose growth was measured.",
        },
      },
      required: ["kind", "instances", "running", "growthBytesPerHour"],
      description:
        "What the diagnoses of the running processes say while the service has no verdict of its own.",
    },
    FleetSuspectJson: {
      type: "object",
      properties: {
        growthBytesPerHour: {
          type: "number",
        },
        low: {
          type: "number",
        },
        high: {
          type: "number",
        },
        rank: {
          type: "number",
        },
        share: {
          type: "number",
          description: "Of the growth of the version's RSS; at most 1.",
        },
        liveBytes: {
          $ref: "#/components/schemas/Bytes",
        },
        stack: {
          type: "array",
          items: {
            $ref: "#/components/schemas/FrameJson",
          },
          description: "Leaf first.",
        },
        line: {
          $ref: "#/components/schemas/FrameJson",
          description: "The frame of the program's own code that names the line.",
        },
        holder: {
          $ref: "#/components/schemas/FleetHolderJson",
          description:
            "The object that keeps its memory, as the diagnosis of one of the processes found it.",
        },
      },
      required: [
        "growthBytesPerHour",
        "high",
        "line",
        "liveBytes",
        "low",
        "rank",
        "share",
        "stack",
      ],
    },
    FrameJson: {
      type: "object",
      properties: {
        function: {
          type: "string",
        },
        file: {
          type: "string",
        },
        line: {
          type: "number",
        },
        kind: {
          type: "string",
          enum: ["python", "native", "mark"],
        },
      },
      required: ["function", "file", "line", "kind"],
    },
    FleetHolderJson: {
      type: "object",
      properties: {
        path: {
          type: "array",
          items: {
            type: "string",
          },
          description: 'From the root down: "module app", "running_stats", "dict[...]".',
        },
        type: {
          type: "string",
        },
      },
      required: ["path", "type"],
    },
    FleetForecastJson: {
      type: "object",
      properties: {
        process: {
          type: "string",
          description: "Its name in the store: the id of its page.",
        },
        instance: {
          type: "string",
        },
        version: {
          type: "string",
        },
        msToLimit: {
          $ref: "#/components/schemas/Millis",
          description:
            "Until the limit is reached, at the rate, at its high and at its low end; 0: never at that rate.",
        },
        earliestMs: {
          $ref: "#/components/schemas/Millis",
        },
        latestMs: {
          $ref: "#/components/schemas/Millis",
        },
        growthBytesPerHour: {
          type: "number",
          description: "Its own rate, where that certainly differs from that of the others.",
        },
      },
      required: ["process", "instance", "version", "msToLimit", "earliestMs", "latestMs"],
    },
    FleetKillsJson: {
      type: "object",
      properties: {
        sinceMs: {
          $ref: "#/components/schemas/TimeMs",
          description: "Kills of the last two weeks, while the server has kept its forecasts.",
        },
        count: {
          type: "number",
        },
        forecast: {
          type: "number",
          description:
            "Kills that the first forecast about the process came at least 5 minutes ahead of.",
        },
        withinInterval: {
          type: "number",
          description: "Of these, how many came within the interval of that forecast.",
        },
        medianLeadMs: {
          $ref: "#/components/schemas/Millis",
          description: "From that forecast to the kill; absent if none was forecast.",
        },
      },
      required: ["sinceMs", "count", "forecast", "withinInterval"],
      description:
        "Kills for memory, and what the diagnosis had forecast about the processes before.",
    },
    FleetSizesJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.fleetSizes/1",
        },
        window: {
          type: "object",
          properties: {
            startMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            endMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["startMs", "endMs"],
        },
        marginShare: {
          type: "number",
          description: "Added to the peak.",
        },
        price: {
          type: "object",
          properties: {
            perGibMonth: {
              type: "number",
            },
            currency: {
              type: "string",
            },
          },
          required: ["perGibMonth", "currency"],
          description: "What a GiB costs a month, as configured.",
        },
        savedBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "Of all services with the state `lower`.",
        },
        sizes: {
          type: "array",
          items: {
            $ref: "#/components/schemas/ServiceSizeJson",
          },
          description: "Those that save most first.",
        },
      },
      required: ["schema", "window", "marginShare", "savedBytes", "sizes"],
      description:
        "`tidemark.fleetSizes/1`: the memory that services need, from the two weeks before the end of a window.",
    },
    ServiceSizeJson: {
      type: "object",
      properties: {
        service: {
          type: "string",
        },
        state: {
          $ref: "#/components/schemas/SizeState",
        },
        summary: {
          type: "string",
          description: "One sentence.",
        },
        instances: {
          type: "number",
          description: "Instances that run.",
        },
        versions: {
          type: "array",
          items: {
            type: "string",
          },
          description:
            "The versions that run, whose peaks were used; `earlierVersions`: also those of versions before.",
        },
        earlierVersions: {
          type: "boolean",
        },
        observedMs: {
          $ref: "#/components/schemas/Millis",
          description: "Hours in which one of these processes ran.",
        },
        instanceDays: {
          type: "number",
          description: "Days of single instances: one peak each.",
        },
        limitBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "The limit of most of the running instances; 0: none is known.",
        },
        peakBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "The 99th percentile of daily peaks of an instance, and the highest.",
        },
        highestBytes: {
          $ref: "#/components/schemas/Bytes",
        },
        needs: {
          type: "object",
          properties: {
            requestBytes: {
              $ref: "#/components/schemas/Bytes",
              description: "Covers 95 % of the hours of an instance.",
            },
            limitBytes: {
              $ref: "#/components/schemas/Bytes",
              description: "`peakBytes` and a margin.",
            },
          },
          required: ["requestBytes", "limitBytes"],
          description: "Absent with the states `leaks` and `unknown`.",
        },
        savedBytes: {
          $ref: "#/components/schemas/Bytes",
          description:
            "Of all running instances, if the limit changes; negative: so much more is needed. 0 unless `lower` or `higher`.",
        },
        kills: {
          type: "number",
          description:
            "Times that the kernel killed one of its processes for memory, but not because the machine was short of it.",
        },
        cautions: {
          type: "array",
          items: {
            type: "string",
          },
          description: "What would break, or may be wrong with these figures: one sentence each.",
        },
      },
      required: [
        "service",
        "state",
        "summary",
        "instances",
        "versions",
        "earlierVersions",
        "observedMs",
        "instanceDays",
        "limitBytes",
        "peakBytes",
        "highestBytes",
        "savedBytes",
        "kills",
        "cautions",
      ],
      description: "What one instance of a service needs.",
    },
    SizeState: {
      type: "string",
      enum: ["lower", "higher", "fits", "unlimited", "leaks", "unknown"],
      description: "How the limit of a service compares with what it needs.",
    },
    AlertsJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.alerts/1",
        },
        evaluatedMs: {
          $ref: "#/components/schemas/TimeMs",
          description:
            "The last evaluation of the rules, also before a restart of the server; 0: there was none.",
        },
        rules: {
          type: "array",
          items: {
            type: "string",
          },
          description: "The rules that are evaluated, by name.",
        },
        receivers: {
          type: "array",
          items: {
            $ref: "#/components/schemas/AlertReceiverJson",
          },
        },
        alerts: {
          type: "array",
          items: {
            $ref: "#/components/schemas/AlertJson",
          },
          description:
            "Firing first, then pending, then resolved; within each the most severe first, then the newest.",
        },
        limits: {
          type: "array",
          items: {
            type: "string",
          },
          description: "What could not be seen, and why.",
        },
      },
      required: ["schema", "evaluatedMs", "rules", "receivers", "alerts", "limits"],
      description: "`tidemark.alerts/1`",
    },
    AlertReceiverJson: {
      type: "object",
      properties: {
        name: {
          type: "string",
          description: "As the configuration names it, or its kind and host.",
        },
        kind: {
          type: "string",
          enum: ["alertmanager", "webhook", "slack", "pagerduty"],
        },
        acceptedMs: {
          $ref: "#/components/schemas/TimeMs",
          description:
            "When it last accepted an alert; absent if it never has since the server started.",
        },
        error: {
          type: "string",
          description: "The last error; absent if the last attempt succeeded.",
        },
      },
      required: ["name", "kind"],
      description: "A receiver of alerts, and whether it takes them.",
    },
    AlertJson: {
      type: "object",
      properties: {
        id: {
          type: "string",
          description: "The same for each alert of this service, version and cause.",
        },
        service: {
          type: "string",
          description: '"": a host, or the whole server.',
        },
        version: {
          type: "string",
          description: 'The first version that is affected; "": unknown, or all.',
        },
        host: {
          type: "string",
          description: '"": the alert is not about a host.',
        },
        cause: {
          $ref: "#/components/schemas/AlertCause",
        },
        state: {
          $ref: "#/components/schemas/AlertState",
        },
        severity: {
          $ref: "#/components/schemas/AlertSeverity",
          description: "The highest of its rules.",
        },
        rules: {
          type: "array",
          items: {
            type: "string",
          },
          description:
            "Names of the rules that hold now; of a resolved alert, those that held last.",
        },
        summary: {
          type: "string",
          description: "One sentence.",
        },
        line: {
          $ref: "#/components/schemas/FrameJson",
          description: "The line that allocates what grows, if an agent ran there.",
        },
        holder: {
          $ref: "#/components/schemas/FleetHolderJson",
          description: "The object that keeps it.",
        },
        growth: {
          $ref: "#/components/schemas/FleetRateJson",
          description: "Of each instance.",
        },
        forecast: {
          type: "object",
          properties: {
            msToLimit: {
              $ref: "#/components/schemas/Millis",
            },
            earliestMs: {
              $ref: "#/components/schemas/Millis",
            },
            latestMs: {
              $ref: "#/components/schemas/Millis",
            },
          },
          required: ["msToLimit", "earliestMs", "latestMs"],
          description:
            "Until the first instance reaches its limit, with its interval; 0: never at that rate.",
        },
        sinceMs: {
          $ref: "#/components/schemas/TimeMs",
          description: "When a rule began to hold.",
        },
        firingMs: {
          $ref: "#/components/schemas/TimeMs",
          description: "When it began to fire; absent before.",
        },
        resolvedMs: {
          $ref: "#/components/schemas/TimeMs",
          description: "Set once it is resolved.",
        },
        lastMs: {
          $ref: "#/components/schemas/TimeMs",
          description: "The last evaluation in which a rule held.",
        },
        acknowledged: {
          $ref: "#/components/schemas/AlertNoteJson",
        },
        silenced: {
          type: "object",
          properties: {
            untilMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            atMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            by: {
              type: "string",
              description: 'As the person gave it; "" if nobody was named.',
            },
            note: {
              type: "string",
            },
          },
          required: ["atMs", "by", "note", "untilMs"],
          description: "No receiver is notified until then.",
        },
      },
      required: [
        "id",
        "service",
        "version",
        "host",
        "cause",
        "state",
        "severity",
        "rules",
        "summary",
        "sinceMs",
        "lastMs",
      ],
    },
    AlertCause: {
      type: "string",
      enum: ["growth", "level", "fragmentation", "oom-kill", "restart-loop", "silence"],
    },
    AlertState: {
      type: "string",
      enum: ["pending", "firing", "resolved"],
      description:
        "pending: a rule holds, but not for long enough yet. firing: receivers are notified. resolved: no rule has held for a while.",
    },
    AlertSeverity: {
      type: "string",
      enum: ["warning", "critical"],
    },
    AlertNoteJson: {
      type: "object",
      properties: {
        atMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        by: {
          type: "string",
          description: 'As the person gave it; "" if nobody was named.',
        },
        note: {
          type: "string",
        },
      },
      required: ["atMs", "by", "note"],
    },
    ActionsJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.actions/1",
        },
        actions: {
          type: "array",
          items: {
            $ref: "#/components/schemas/ActionJson",
          },
          description: "Newest first.",
        },
        limits: {
          type: "object",
          properties: {
            service: {
              type: "string",
            },
            fleet: {
              type: "string",
            },
          },
          required: ["service", "fleet"],
          description: "What the server allows in an hour.",
        },
      },
      required: ["schema", "actions", "limits"],
      description: "`tidemark.actions/1`",
    },
    ActionJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.action/1",
        },
        id: {
          type: "string",
        },
        timeMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        service: {
          type: "string",
        },
        version: {
          type: "string",
          description: '"": unknown.',
        },
        host: {
          type: "string",
        },
        pid: {
          $ref: "#/components/schemas/Pid",
          description: "Of the program's first process.",
        },
        action: {
          $ref: "#/components/schemas/ActionName",
        },
        what: {
          type: "string",
          description: "As the policy writes it: the action's name, or the command or address.",
        },
        pod: {
          $ref: "#/components/schemas/PodJson",
          description:
            "What `evict_pod` evicts; absent for other actions, and if the pod is unknown.",
        },
        state: {
          $ref: "#/components/schemas/ActionState",
        },
        reason: {
          type: "string",
          description: "The condition that held, with its figures.",
        },
        why: {
          type: "string",
          description: 'Why it was refused or failed; otherwise "".',
        },
        outcome: {
          type: "string",
          description: 'What was done, as reported; "" before.',
        },
        evidence: {
          type: "string",
          description: 'Folder on the host with what was captured before; "": nothing was.',
        },
        beforeBytes: {
          $ref: "#/components/schemas/Bytes",
          description:
            "RSS of the program, or of its service on this host for a restart or an eviction: just before, once the effect was there, an hour later.",
        },
        afterBytes: {
          $ref: "#/components/schemas/Bytes",
        },
        hourLaterBytes: {
          $ref: "#/components/schemas/Bytes",
        },
        helped: {
          type: "boolean",
          description:
            "Whether memory fell enough for the action to be repeated; absent until it is measured.",
        },
      },
      required: [
        "schema",
        "id",
        "timeMs",
        "service",
        "version",
        "host",
        "pid",
        "action",
        "what",
        "state",
        "reason",
        "why",
        "outcome",
        "evidence",
      ],
      description:
        "A line of `actions.jsonl`: `tidemark.action/1`. Of several lines with the same id, the last one counts.",
    },
    ActionName: {
      type: "string",
      enum: [
        "on_pressure",
        "gc_collect",
        "malloc_trim",
        "empty_cache",
        "recycle_worker",
        "restart",
        "evict_pod",
        "command",
        "webhook",
      ],
    },
    PodJson: {
      type: "object",
      properties: {
        namespace: {
          type: "string",
        },
        name: {
          type: "string",
        },
        uid: {
          type: "string",
        },
      },
      required: ["namespace", "name", "uid"],
      description: "A pod as the API server names it.",
    },
    ActionState: {
      type: "string",
      enum: ["refused", "would-act", "running", "done", "failed"],
    },
    IngestJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.ingest/1",
        },
        streams: {
          type: "array",
          items: {
            $ref: "#/components/schemas/IngestStreamJson",
          },
          description: "Those that sent last come first.",
        },
        otherStreams: {
          type: "number",
          description: "Streams that are not listed.",
        },
        refused: {
          type: "array",
          items: {
            type: "object",
            properties: {
              path: {
                type: "string",
              },
              requests: {
                type: "number",
              },
              lastMs: {
                $ref: "#/components/schemas/TimeMs",
              },
              lastError: {
                type: "string",
              },
            },
            required: ["path", "requests", "lastMs", "lastError"],
          },
          description: "Requests that were refused since the server's start, by address.",
        },
        labels: {
          type: "array",
          items: {
            type: "object",
            properties: {
              service: {
                type: "string",
              },
              label: {
                type: "string",
              },
              values: {
                type: "number",
              },
              overflowed: {
                type: "number",
              },
            },
            required: ["service", "label", "values", "overflowed"],
          },
          description:
            "Values of the labels of each service; the largest first. `overflowed` values are stored as `__overflow__`.",
        },
        storage: {
          type: "object",
          properties: {
            services: {
              type: "array",
              items: {
                type: "object",
                properties: {
                  service: {
                    type: "string",
                  },
                  processes: {
                    type: "number",
                  },
                  rows: {
                    type: "number",
                  },
                  bytes: {
                    $ref: "#/components/schemas/Bytes",
                  },
                },
                required: ["service", "processes", "rows", "bytes"],
              },
              description: "Rows of samples and metrics. `bytes`: the share of the days' files.",
            },
            tiers: {
              type: "array",
              items: {
                type: "object",
                properties: {
                  tier: {
                    type: "string",
                  },
                  days: {
                    type: "number",
                  },
                  bytes: {
                    $ref: "#/components/schemas/Bytes",
                  },
                  fromMs: {
                    $ref: "#/components/schemas/TimeMs",
                  },
                  toMs: {
                    $ref: "#/components/schemas/TimeMs",
                  },
                },
                required: ["tier", "days", "bytes", "fromMs", "toMs"],
              },
            },
            dictionariesBytes: {
              $ref: "#/components/schemas/Bytes",
              description: "Functions, stacks, processes, labels.",
            },
            recordings: {
              type: "object",
              properties: {
                streams: {
                  type: "number",
                },
                bytes: {
                  $ref: "#/components/schemas/Bytes",
                },
              },
              required: ["streams", "bytes"],
            },
          },
          required: ["services", "tiers", "dictionariesBytes", "recordings"],
        },
        retention: {
          type: "object",
          properties: {
            keepMs: {
              $ref: "#/components/schemas/Millis",
            },
            keepRecordingsMs: {
              $ref: "#/components/schemas/Millis",
            },
            bytes: {
              $ref: "#/components/schemas/Bytes",
            },
            tiers: {
              type: "array",
              items: {
                type: "object",
                properties: {
                  tier: {
                    type: "string",
                  },
                  untilMs: {
                    $ref: "#/components/schemas/Millis",
                  },
                },
                required: ["tier", "untilMs"],
              },
              description: "The age at which a day leaves this tier.",
            },
          },
          required: ["keepMs", "keepRecordingsMs", "bytes", "tiers"],
        },
      },
      required: ["schema", "streams", "otherStreams", "refused", "labels", "storage", "retention"],
    },
    IngestStreamJson: {
      type: "object",
      properties: {
        stream: {
          type: "string",
        },
        service: {
          type: "string",
          description:
            '"": its first frames are not in the database yet; also `version` and `host`.',
        },
        version: {
          type: "string",
        },
        host: {
          type: "string",
        },
        source: {
          type: "string",
          description: '"tidemark", or the name of the other profiler.',
        },
        bytes: {
          $ref: "#/components/schemas/Bytes",
        },
        lastMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        bytesPerMinute: {
          type: "number",
          description: "Over the last five minutes.",
        },
        refused: {
          type: "number",
          description: "Refused requests since the server's start.",
        },
        lastError: {
          type: "string",
          description: "Why the last one was refused.",
        },
      },
      required: [
        "stream",
        "service",
        "version",
        "host",
        "source",
        "bytes",
        "lastMs",
        "bytesPerMinute",
        "refused",
      ],
      description:
        "One sender: a recording that is sent while it grows, or the profiles of another profiler with one set of labels.",
    },
    ArtifactsJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.artifacts/1",
        },
        artifacts: {
          type: "array",
          items: {
            $ref: "#/components/schemas/StoredArtifactJson",
          },
          description: "The newest first.",
        },
        bytes: {
          $ref: "#/components/schemas/Bytes",
          description: "Of all files of artifacts, those that are still being received included.",
        },
        limits: {
          type: "object",
          properties: {
            count: {
              type: "number",
            },
            keepMs: {
              $ref: "#/components/schemas/Millis",
            },
            bytes: {
              $ref: "#/components/schemas/Bytes",
            },
            artifactBytes: {
              $ref: "#/components/schemas/Bytes",
              description: "Of one artifact.",
            },
          },
          required: ["count", "keepMs", "bytes", "artifactBytes"],
          description: "The oldest artifacts beyond these are removed.",
        },
        recordings: {
          type: "object",
          properties: {
            streams: {
              type: "number",
            },
            bytes: {
              $ref: "#/components/schemas/Bytes",
            },
          },
          required: ["streams", "bytes"],
          description: "Recordings that programs sent; each is the report of an instance.",
        },
      },
      required: ["schema", "artifacts", "bytes", "limits", "recordings"],
      description: "What a server has of artifacts: `tidemark.artifacts/1`.",
    },
    StoredArtifactJson: {
      type: "object",
      properties: {
        service: {
          type: "string",
        },
        version: {
          type: "string",
          description: '"": unknown; also `env`.',
        },
        env: {
          type: "string",
        },
        host: {
          type: "string",
        },
        pid: {
          $ref: "#/components/schemas/Pid",
          description: "Of the program's first process.",
        },
        command: {
          type: "array",
          items: {
            type: "string",
          },
        },
        timeMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        reason: {
          type: "string",
          description: "One sentence: which condition held, with its figures.",
        },
        lastMoment: {
          type: "boolean",
          description: "The program ran out of memory or crashed: the files show its last moment.",
        },
        problems: {
          type: "array",
          items: {
            type: "string",
          },
          description: "What could not be captured, and why.",
        },
        id: {
          type: "string",
          description: "Part of the addresses of its files.",
        },
        receivedMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        bytes: {
          $ref: "#/components/schemas/Bytes",
        },
        files: {
          type: "array",
          items: {
            $ref: "#/components/schemas/StoredArtifactFileJson",
          },
        },
      },
      required: [
        "bytes",
        "command",
        "env",
        "files",
        "host",
        "id",
        "lastMoment",
        "pid",
        "problems",
        "reason",
        "receivedMs",
        "service",
        "timeMs",
        "version",
      ],
      description: "An artifact that a server has.",
    },
    StoredArtifactFileJson: {
      type: "object",
      properties: {
        name: {
          type: "string",
          description: "Of the file beside `about.json`.",
        },
        capture: {
          anyOf: [
            {
              $ref: "#/components/schemas/Capture",
            },
            {
              type: "string",
              const: "recording",
            },
          ],
        },
        pid: {
          $ref: "#/components/schemas/Pid",
          description: "0: of the whole program.",
        },
        bytes: {
          $ref: "#/components/schemas/Bytes",
        },
        opens: {
          type: "boolean",
          description: "Whether the server's pages can open it; every file can be downloaded.",
        },
      },
      required: ["bytes", "capture", "name", "opens", "pid"],
      description: "One file of an artifact that a server has.",
    },
    Capture: {
      type: "string",
      enum: ["diagnose", "ledger", "census", "snapshot", "stacks", "gpu", "flight_recorder"],
    },
    ArtifactAnswer: {
      type: "object",
      properties: {
        nextOffset: {
          type: "number",
          description:
            "The offset from which the sender continues; absent if it must not continue.",
        },
        complete: {
          type: "boolean",
        },
        missing: {
          type: "array",
          items: {
            type: "string",
          },
          description: "Files that must be sent before `about.json`.",
        },
        error: {
          type: "string",
          description: "One line for people.",
        },
      },
      description: "Answer of `PUT /api/v1/artifacts/ID/NAME`.",
    },
    LeaseAnswer: {
      anyOf: [
        {
          type: "object",
          properties: {
            granted: {
              type: "boolean",
              const: true,
            },
            untilMs: {
              $ref: "#/components/schemas/TimeMs",
            },
          },
          required: ["granted", "untilMs"],
        },
        {
          type: "object",
          properties: {
            granted: {
              type: "boolean",
              const: false,
            },
            why: {
              type: "string",
            },
          },
          required: ["granted", "why"],
        },
      ],
      description: "Answer of `POST /api/v1/leases`.",
    },
    EvictionAnswer: {
      anyOf: [
        {
          type: "object",
          properties: {
            evicted: {
              type: "boolean",
              const: true,
            },
          },
          required: ["evicted"],
        },
        {
          type: "object",
          properties: {
            evicted: {
              type: "boolean",
              const: false,
            },
            why: {
              type: "string",
            },
          },
          required: ["evicted", "why"],
        },
      ],
      description: "Answer of `POST /api/v1/actions/evict`.",
    },
    RequestsJson: {
      type: "object",
      properties: {
        schema: {
          type: "string",
          const: "tidemark.requests/1",
        },
        requests: {
          type: "array",
          items: {
            $ref: "#/components/schemas/RequestJson",
          },
          description: "Newest first.",
        },
        limits: {
          type: "object",
          properties: {
            service: {
              type: "string",
            },
            fleet: {
              type: "string",
            },
          },
          required: ["service", "fleet"],
          description: "How many the server accepts.",
        },
      },
      required: ["schema", "requests", "limits"],
      description: "`tidemark.requests/1`",
    },
    RequestJson: {
      type: "object",
      properties: {
        id: {
          type: "string",
        },
        service: {
          type: "string",
        },
        timeMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        untilMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        by: {
          type: "string",
          description: 'Who asked, as given; "" if unknown.',
        },
        programs: {
          type: "array",
          items: {
            $ref: "#/components/schemas/RequestedProgramJson",
          },
          description: "Absent: all programs of the service.",
        },
        captures: {
          type: "object",
          properties: {
            atMs: {
              $ref: "#/components/schemas/TimeMs",
            },
            what: {
              type: "array",
              items: {
                $ref: "#/components/schemas/Capture",
              },
            },
          },
          required: ["atMs", "what"],
          description:
            "Captures of all its programs at the same moment on all hosts, instead of the agent.",
        },
        hosts: {
          type: "array",
          items: {
            $ref: "#/components/schemas/RequestHostJson",
          },
          description: "The hosts with programs of the service that have answered.",
        },
      },
      required: ["id", "service", "timeMs", "untilMs", "by", "hosts"],
      description:
        "Asks all collectors to give the programs of a service the agent until a time, or to capture them at a moment.",
    },
    RequestedProgramJson: {
      type: "object",
      properties: {
        host: {
          type: "string",
        },
        pid: {
          type: "number",
        },
      },
      required: ["host", "pid"],
      description: "One program of the service, by its first process.",
    },
    RequestHostJson: {
      type: "object",
      properties: {
        host: {
          type: "string",
        },
        programs: {
          type: "number",
          description: "Programs of the service that have the agent now, or that were captured.",
        },
        why: {
          type: "string",
          description: 'Why others do not have it or were not captured; "": all do, or were.',
        },
      },
      required: ["host", "programs", "why"],
      description: "What a collector does about a request.",
    },
    CollectorAnswer: {
      type: "object",
      properties: {
        nowMs: {
          $ref: "#/components/schemas/TimeMs",
          description: "The server's clock, by which requests end.",
        },
        policy: {
          type: ["string", "null"],
          description:
            "A policy in YAML; null: the server hands out none; absent: it cannot read it, and collectors keep what they have.",
        },
        requests: {
          type: "array",
          items: {
            $ref: "#/components/schemas/RequestJson",
          },
          description: "The open ones for all programs of a service.",
        },
        named: {
          type: "array",
          items: {
            $ref: "#/components/schemas/RequestJson",
          },
          description:
            "The open ones that name programs. Apart, because an older collector would take them for all of the service.",
        },
        captures: {
          type: "array",
          items: {
            $ref: "#/components/schemas/RequestJson",
          },
          description: "The open ones for captures. Apart for the same reason.",
        },
      },
      required: ["nowMs", "requests"],
      description: "Answer of `POST /api/v1/collector`.",
    },
    InstanceAnswer: {
      type: "object",
      properties: {
        service: {
          type: "string",
        },
        stream: {
          type: "string",
          description: "Name of its stream; the address of its page ends in it.",
        },
        state: {
          $ref: "#/components/schemas/InstanceState",
        },
        version: {
          type: "string",
        },
        env: {
          type: "string",
        },
        host: {
          type: "string",
        },
        pod: {
          type: "string",
        },
        container: {
          type: "string",
        },
        pid: {
          $ref: "#/components/schemas/Pid",
        },
        command: {
          type: "string",
        },
        python: {
          type: "string",
        },
        startedMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        endedMs: {
          $ref: "#/components/schemas/TimeMs",
          description:
            "Absent if its end is not known; after the window if it ran at the window's end.",
        },
        lastSeenMs: {
          $ref: "#/components/schemas/TimeMs",
        },
        rssBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "Of the program and its child processes, at the last reading.",
        },
        peakRssBytes: {
          $ref: "#/components/schemas/Bytes",
        },
        processes: {
          type: "number",
          description:
            "The program and its child processes that run; of a program that has ended, all that it had.",
        },
        growthBytesPerHour: {
          type: "number",
          description: "By its verdict, while it ran; absent if that did not measure it.",
        },
        limitBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "0: none.",
        },
        continuedAs: {
          type: "string",
          description:
            "Stream of the next recording of the same process, which got the agent or lost it then; absent: this is the last one.",
        },
        highBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "`memory.high` of its control group; absent: none.",
        },
        msToLimit: {
          $ref: "#/components/schemas/Millis",
          description:
            "Until this instance reaches its limit; 0: no limit, no growth, or it does not run.",
        },
        verdict: {
          type: "object",
          properties: {
            kind: {
              type: "string",
            },
            confidence: {
              type: "number",
            },
            summary: {
              type: "string",
            },
          },
          required: ["kind", "confidence", "summary"],
        },
        labels: {
          type: "object",
          additionalProperties: {
            type: "string",
          },
        },
        source: {
          type: "string",
          description:
            'Another profiler that sent its profiles ("pyroscope", "otlp", "datadog"), or the tool of an imported file without RSS ("tracemalloc"). RSS is unknown then.',
        },
        liveBytes: {
          $ref: "#/components/schemas/Bytes",
          description: "With  {@link  source } : of its last profile; absent if it has none.",
        },
      },
      required: [
        "command",
        "container",
        "env",
        "host",
        "labels",
        "lastSeenMs",
        "limitBytes",
        "msToLimit",
        "peakRssBytes",
        "pid",
        "pod",
        "processes",
        "python",
        "rssBytes",
        "service",
        "startedMs",
        "state",
        "stream",
        "verdict",
        "version",
      ],
      description: "An instance, and its service.",
    },
    FramesAnswer: {
      type: "object",
      properties: {
        nextOffset: {
          type: "number",
          description:
            "The offset from which the sender continues; absent if it must not continue.",
        },
        error: {
          type: "string",
          description: "One line for people.",
        },
      },
      description: "Answers of `POST /api/v1/frames`.",
    },
    HealthAnswer: {
      type: "object",
      properties: {
        ok: {
          type: "boolean",
          const: true,
        },
      },
      required: ["ok"],
    },
    ErrorAnswer: {
      type: "object",
      properties: {
        error: {
          type: "string",
          description: "One line.",
        },
      },
      required: ["error"],
    },
  },
} as const;

import { generateFleet, } from "./fleetbench/generate.mjs";
import * as G from "./fleetbench/generate.mjs";
import { DEPLOY_AGES_MS, CALM_MOMENTS_MS } from "./fleetbench/moments.mjs";
import { diagnoseService } from "./dist/diagnose/index.js";
import * as D from "./fleetbench/deploys.mjs";
const causes = G.INNOCENT_DEPLOYS ?? D.INNOCENT_DEPLOYS;
const H=3600e3;
for (const [seed,name] of JSON.parse(process.argv[2])) {
 const fleet=G.generateFleet(seed,{causes});
 const own=fleet.processes.filter(p=>p.service===name).map(p=>({...p,sites:[]}));
 const versions=[...new Set(own.toSorted((a,b)=>a.startedMs-b.startedMs).map(p=>p.version))];
 const deploy=Math.min(...own.filter(p=>p.version===versions.at(-1)).map(p=>p.startedMs));
 console.log(seed,name,'versions',versions.length,'last deploy h before end',((fleet.endMs-deploy)/H).toFixed(1), 'instances', new Set(own.map(p=>p.instance)).size);
 const moments=process.argv[4]?Array.from({length:80},(_,i)=>fleet.endMs-(79-i)*3*H):[...CALM_MOMENTS_MS.map(m=>fleet.endMs-m),...DEPLOY_AGES_MS.map(a=>deploy+a).filter(t=>t<fleet.endMs),fleet.endMs].sort((a,b)=>a-b);
 for(const t of moments){
  const procs=own.filter(p=>p.startedMs<t).map(p=>{const n=p.rss.times.filter(x=>x<=t).length; return {...p, endedMs:p.endedMs!==null&&p.endedMs<=t?p.endedMs:null, rss:{times:p.rss.times.slice(0,n),values:p.rss.values.slice(0,n)}};});
  const d=diagnoseService({service:name,window:{startMs:t-14*24*H,endMs:t},processes:procs},4);
  const leak=!["steady","warm-up","cache-plateau","insufficient-evidence"].includes(d.verdict.kind);
  if(leak||process.argv[3]) console.log(leak?'ACCUSED':'', ((t-deploy)/H).toFixed(1)+' h after deploy', d.verdict.summary.slice(0,300)); 
 }
}
